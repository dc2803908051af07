//! `multipart/form-data`, as far as boards speak it: a few small fields and one picture, in memory.
//!
//! The caller bounds the whole; here the number of parts and the size of their headers are bounded too.

/// One part of a form.
#[derive(Debug, PartialEq, Eq)]
pub struct FormPart<'a> {
    pub name: &'a str,
    pub body: &'a [u8],
}

/// Firmware sends two parts with short headers.
const PARTS: usize = 8;
const HEADER_BYTES: usize = 1024;
/// The limit of the standard.
const BOUNDARY_BYTES: usize = 70;

/// The boundary that a content type names; `None` where it is not that of a form.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let named = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    let fits = (1..=BOUNDARY_BYTES).contains(&named.len()) && named.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then_some(named)
}

/// The parts of a form, or what is wrong with it.
pub fn parse<'a>(body: &'a [u8], boundary: &str) -> Result<Vec<FormPart<'a>>, &'static str> {
    let delimiter = format!("\r\n--{boundary}");
    let delimiter = delimiter.as_bytes();
    // The first delimiter may stand at the very beginning, without the line break that belongs to it.
    let mut rest = match body.strip_prefix(&delimiter[2..]) {
        Some(rest) => rest,
        None => split(body, delimiter).ok_or("the boundary does not occur in the form")?.1,
    };
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if parts.len() == PARTS {
            return Err("the form has too many parts");
        }
        rest = rest.strip_prefix(b"\r\n").ok_or("a boundary does not end its line")?;
        // A part without headers begins with the empty line that would end them.
        let (header, after) = match rest.strip_prefix(b"\r\n") {
            Some(after) => (&rest[..0], after),
            None => split(rest, b"\r\n\r\n").ok_or("the headers of a part do not end")?,
        };
        let (body, after) = split(after, delimiter).ok_or("the form is cut short")?;
        if header.len() > HEADER_BYTES {
            return Err("the headers of a part are too long");
        }
        let header = std::str::from_utf8(header).map_err(|_| "the headers of a part are not text")?;
        parts.push(FormPart { name: name(header).ok_or("a part has no name")?, body });
        rest = after;
    }
}

fn name(header: &str) -> Option<&str> {
    let disposition = header.split("\r\n").find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    disposition.split(';').find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case("name").then(|| value.trim().trim_matches('"'))
    })
}

/// What stands before and after the first `needle`.
fn split<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(bytes, needle)?;
    Some((&bytes[..at], &bytes[at + needle.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDARY: &str = "----ESP32_CAMERA_BOUNDARY";

    fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut form = Vec::new();
        for (name, body) in parts {
            form.extend(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"camera.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n").bytes());
            form.extend(*body);
            form.extend(b"\r\n");
        }
        form.extend(format!("--{BOUNDARY}--\r\n").bytes());
        form
    }

    #[test]
    fn a_form_of_firmware_is_read_bytes_and_all() {
        let picture = [0xff, 0xd8, b'\r', b'\n', b'-', b'-', 0, 0xff];
        let form = form(&[("question", "Was ist das?".as_bytes()), ("file", &picture), ("empty", b"")]);
        let parts = parse(&form, BOUNDARY).expect("a form");
        let named: Vec<_> = parts.iter().map(|part| (part.name, part.body)).collect();
        assert_eq!(named, [("question", "Was ist das?".as_bytes()), ("file", &picture[..]), ("empty", &b""[..])]);
    }

    #[test]
    fn a_preamble_is_skipped_and_what_follows_the_end_is_not_read() {
        let mut whole = b"preamble\r\n".to_vec();
        whole.extend(form(&[("a", b"1")]));
        whole.extend(b"--anything");
        assert_eq!(parse(&whole, BOUNDARY).expect("a form"), [FormPart { name: "a", body: b"1" }]);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let whole = form(&[("file", b"x")]);
        for end in 0..whole.len() - 4 {
            assert!(parse(&whole[..end], BOUNDARY).is_err(), "cut at {end}");
        }
        let many: Vec<(&str, &[u8])> = vec![("a", b""); 9];
        assert_eq!(parse(&form(&many), BOUNDARY), Err("the form has too many parts"));
        assert!(parse(b"--x\r\n\r\nbody\r\n--x--", "x").is_err(), "a part without a name");
    }

    #[test]
    fn the_boundary_is_found_where_it_may_stand() {
        assert_eq!(boundary("multipart/form-data; boundary=----X"), Some("----X"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a-b\""), Some("a-b"));
        for wrong in ["", "text/plain; boundary=x", "multipart/form-data", "multipart/form-data; boundary="] {
            assert_eq!(boundary(wrong), None, "{wrong}");
        }
        assert_eq!(boundary(&format!("multipart/form-data; boundary={}", "x".repeat(71))), None);
    }
}
