//! Typing mistakes: the name that was probably meant.

/// Names with more differences than this are different names.
const MAX_DISTANCE: usize = 3;

/// The known name most similar to what was written, if one is similar enough.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // An underscore in place of a hyphen is the most common mistake.
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let wanted = plain(wanted);
    let (far, name) = names.into_iter().map(|name| (distance(&wanted, &plain(name)), name)).min()?;
    (far <= MAX_DISTANCE && far < name.chars().count().min(wanted.chars().count().max(1))).then_some(name)
}

/// Levenshtein's distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
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
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("listen", []), None);
    }
}
