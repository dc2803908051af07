//! The parameters in the query of a URL.

/// The pairs of a query or of a form, decoded.
pub fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    })
}

/// A path of a URI, decoded; a plus stands for itself there.
pub(crate) fn decoded_path(path: &str) -> String {
    decoded(&path.replace('+', "%2B"))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, hex) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let pairs: Vec<_> = pairs("id=a%20b&x=1+2&bad=%zz&lone").collect();
        assert_eq!(decoded_path("a+b%20c"), "a+b c");
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs, [text("id", "a b"), text("x", "1 2"), text("bad", "%zz"), text("lone", "")]);
    }
}
