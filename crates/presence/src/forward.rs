//! What the answer of another node means for a call that was sent to it.

/// How a call that was sent to another node came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAnswer {
    /// The node answered, with a result or an error of the device.
    Ended,
    /// The node does not hold the device under the fence of the call, and did not run it.
    Refused,
    /// No node listens there; nothing was delivered.
    NoResponder,
    /// The call was sent, and no answer came.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    Done,
    /// Nothing was run: find the device again and send the call there.
    RouteAgain,
    /// Nothing was run, and the device moves faster than calls follow it.
    GiveUp,
    /// The call may have had its effect, so it is never sent again.
    MayHaveHappened,
}

/// One call on its way to another node. It is sent at most twice, and the second time only when the first was not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forward {
    is_second: bool,
}

impl Forward {
    pub fn handle_answer(&mut self, answer: CallAnswer) -> NextHop {
        match answer {
            CallAnswer::Ended => NextHop::Done,
            CallAnswer::Lost => NextHop::MayHaveHappened,
            CallAnswer::Refused | CallAnswer::NoResponder if self.is_second => NextHop::GiveUp,
            CallAnswer::Refused | CallAnswer::NoResponder => {
                self.is_second = true;
                NextHop::RouteAgain
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_not_run_is_routed_once_more() {
        for nothing_ran in [CallAnswer::Refused, CallAnswer::NoResponder] {
            let mut call = Forward::default();
            assert_eq!(call.handle_answer(nothing_ran), NextHop::RouteAgain);
            assert_eq!(call.handle_answer(CallAnswer::Refused), NextHop::GiveUp);
        }
    }

    #[test]
    fn a_call_without_an_answer_is_never_sent_again() {
        let mut call = Forward::default();
        assert_eq!(call.handle_answer(CallAnswer::Lost), NextHop::MayHaveHappened);
        let mut moved = Forward::default();
        moved.handle_answer(CallAnswer::Refused);
        assert_eq!(moved.handle_answer(CallAnswer::Lost), NextHop::MayHaveHappened);
    }
}
