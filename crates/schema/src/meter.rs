//! The counter that bounds a check.

/// What a check may still spend. One unit is one elementary step, some ten nanoseconds.
#[derive(Debug)]
pub struct Meter {
    limit: u64,
    left: u64,
}

/// The meter is empty: the check was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the check takes more work than allowed")]
pub struct Exhausted;

impl Meter {
    pub fn new(limit: u64) -> Meter {
        Meter { limit, left: limit }
    }

    pub fn spent(&self) -> u64 {
        self.limit - self.left
    }

    /// Takes units out; to be called before the work is done or the memory taken.
    pub(crate) fn spend(&mut self, units: u64) -> Result<(), Exhausted> {
        match self.left.checked_sub(units) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Exhausted)
            }
        }
    }

    /// For work in proportion to a length in bytes or items that costs far less than a step each.
    pub(crate) fn spend_length(&mut self, length: usize) -> Result<(), Exhausted> {
        self.spend(1 + length as u64 / 16)
    }
}
