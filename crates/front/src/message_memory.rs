//! Estimates the memory that a JSON message takes, before it is parsed.

use sinew_gateway::aside;
use sinew_tool::ErrorKind;

use crate::inspect::MessageError;
use crate::memory::MemoryShare;

/// Values in one message. A call with a matrix of 300 by 300 numbers still fits.
const MAX_VALUES: usize = 100_000;
/// Bytes that one value takes while a message is handled, with all copies. Measured: an array of zeros of 3.8 MB took
/// 580 MB at `/mcp`.
const VALUE: usize = 320;

/// So few values need not be counted exactly: they take little.
const FEW: usize = 128;

/// Longer messages are read while other threads serve the calls: each megabyte takes some milliseconds.
const READ_IMMEDIATELY: usize = 64 << 10;

/// Looks at a message of so many bytes, aside where that takes long.
pub(crate) fn aside_where_long<T>(length: usize, look: impl FnOnce() -> T) -> T {
    if length > READ_IMMEDIATELY { aside(look) } else { look() }
}

/// Takes the memory that `message` needs from the budget for requests.
pub(crate) fn take(share: &mut MemoryShare, message: &[u8]) -> Result<(), MessageError> {
    let values = match at_most(message) {
        few @ ..=FEW => few,
        _ => count(message),
    };
    if values > MAX_VALUES {
        let message = format!("the message holds more than {MAX_VALUES} values; send less at once");
        return Err(MessageError::new(ErrorKind::TooLarge, message));
    }
    match share.try_grow(message.len() + values * VALUE) {
        true => Ok(()),
        false => Err(busy()),
    }
}

/// The error when no memory is left for further requests.
pub(crate) fn busy() -> MessageError {
    MessageError::new(ErrorKind::Busy, "too many large requests are being handled; try again in a second")
}

/// At least as many as [`count`], in a third of the time: what is in strings counts too.
fn at_most(text: &[u8]) -> usize {
    const BEGINS_VALUE: [bool; 256] = {
        let mut begins = [false; 256];
        begins[b'[' as usize] = true;
        begins[b'{' as usize] = true;
        begins[b',' as usize] = true;
        begins[b':' as usize] = true;
        begins
    };
    1 + text.iter().map(|byte| usize::from(BEGINS_VALUE[*byte as usize])).sum::<usize>()
}

/// The most values that a JSON text can hold: each is the first, or follows a bracket, a comma or a colon. Stops counting
/// where they are too many.
fn count(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' | b':' if !in_string && count > MAX_VALUES => break,
            b'[' | b'{' | b',' | b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryBudget;

    #[test]
    fn values_are_counted_and_the_contents_of_strings_are_not() {
        assert_eq!(count(b"5"), 1);
        assert!(count(br#"[1,2,{"a":3}]"#) >= 5);
        assert_eq!(count(br#""[,\",{:]""#), 1);
        for text in [&b"5"[..], br#"[1,2,{"a":3}]"#, br#""[,\",{:]""#] {
            assert!(at_most(text) >= count(text));
        }
        assert_eq!(count("[".repeat(1 << 20).as_bytes()), MAX_VALUES + 1);
    }

    #[test]
    fn a_message_of_many_small_values_is_refused_and_all_together_are_bounded() {
        let budget = MemoryBudget::new(20 << 20);
        let mut first = budget.share();
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(take(&mut first, many.as_bytes()).map_err(|refusal| refusal.kind), Err(ErrorKind::TooLarge));
        let half = format!("[{}0]", "0,".repeat(MAX_VALUES / 2));
        assert_eq!(take(&mut first, half.as_bytes()), Ok(()));
        let refused = take(&mut budget.share(), half.as_bytes()).map_err(|refusal| refusal.kind);
        assert_eq!(refused, Err(ErrorKind::Busy));
        assert_eq!(take(&mut budget.share(), b"{}"), Ok(()), "small messages still fit");
    }
}
