//! Typing mistakes: the name that was probably meant.

/// Names with more differences than this are different names.
const MAX_DISTANCE: usize = 3;
/// One difference is allowed for so many letters: `lisen` is `listen`, and `log` is not `lock`.
const LETTERS_PER_DIFFERENCE: usize = 3;

/// The known name most similar to what was written, if one is similar enough.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // An underscore in place of a hyphen is the most common mistake.
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let wanted = plain(wanted);
    let (far, name) = names.into_iter().map(|name| (distance(&wanted, &plain(name)), name)).min()?;
    let letters = name.chars().count().max(wanted.chars().count());
    (far <= MAX_DISTANCE.min(letters / LETTERS_PER_DIFFERENCE)).then_some(name)
}

/// Characters to add, remove, replace or exchange with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for i in 0..left.len() {
        let mut next = vec![i + 1];
        for j in 0..right.len() {
            let replaced = row[j] + usize::from(left[i] != right[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_far_ones_are_not() {
        let names = ["listen", "tls-cert", "volume"];
        assert_eq!(nearest("lisen", names), Some("listen"));
        assert_eq!(nearest("TLS_cert", names), Some("tls-cert"));
        assert_eq!(nearest("volum", names), Some("volume"));
        assert_eq!(nearest("brightness", names), None);
        assert_eq!(nearest("log", ["lock", "tls", "loud"]), None);
        assert_eq!(nearest("lokc", ["lock"]), Some("lock"), "exchanged letters are one mistake");
        assert_eq!(nearest("loop", ["lock"]), None, "two differences in four letters");
        assert_eq!(nearest("lck", ["lock"]), Some("lock"));
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("listen", []), None);
    }
}
