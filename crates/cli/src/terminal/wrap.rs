//! Breaking lines between words, so that a terminal does not break them within one.

use sinew_tool::text::columns;

/// Breaks a line that is wider than the terminal. The rest continues under the last column of the line, where columns
/// are at least two spaces apart. A word that fits no line stays where it is, and a command in backticks stays whole
/// where it can, so that it is copied in one piece.
pub fn wrap_line(line: &str, width: usize) -> String {
    if visible(line) <= width {
        return line.to_owned();
    }
    let hanging = hanging(line, width);
    let room = width - hanging;
    let (mut text, mut column, mut is_new) = (String::new(), 0, true);
    for word in words(line, room) {
        let length = visible(word);
        if !is_new {
            if column + 1 + length <= width || length > room || column <= hanging {
                text.push(' ');
                column += 1;
            } else {
                text.truncate(text.trim_end_matches(' ').len());
                text.push_str(&format!("\n{:hanging$}", ""));
                column = hanging;
            }
        }
        text.push_str(word);
        column += length;
        // Spaces at a break are not carried into the next line.
        is_new = word.is_empty() && column == hanging && text.contains('\n');
    }
    text
}

/// How many columns a text takes, which may have colours.
pub fn visible(text: &str) -> usize {
    let mut parts = text.split('\x1b');
    let plain = parts.next().map_or(0, columns);
    plain + parts.map(|part| columns(part.split_once('m').map_or("", |(_, rest)| rest))).sum::<usize>()
}

/// The column under which a line continues: its last one in the left half of the terminal.
fn hanging(line: &str, width: usize) -> usize {
    let (mut found, mut spaces) = (0, 0);
    for (at, letter) in line.char_indices() {
        let column = match letter {
            ' ' => None,
            _ if spaces > 1 || spaces == at => Some(visible(&line[..at])),
            _ => None,
        };
        spaces = if letter == ' ' { spaces + 1 } else { 0 };
        match column {
            Some(column) if column > width / 2 => break,
            Some(column) => found = column,
            None => {}
        }
    }
    found
}

/// The line at its spaces, except those of a quotation that fits the room.
fn words(line: &str, room: usize) -> Vec<&str> {
    let (mut words, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(letter) = line[at..].chars().next() {
        let quoted = if letter == '`' { quotation(&line[at..], room) } else { None };
        if letter == ' ' {
            words.push(&line[start..at]);
            start = at + 1;
        }
        at += quoted.unwrap_or(letter.len_utf8());
    }
    words.push(&line[start..]);
    words
}

fn quotation(text: &str, room: usize) -> Option<usize> {
    let length = text[1..].find('`')? + 2;
    (visible(&text[..length]) <= room).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_continues_under_its_last_column() {
        assert_eq!(wrap_line("one two three four", 10), "one two\nthree four");
        assert_eq!(wrap_line("  one two three", 10), "  one two\n  three");
        assert_eq!(wrap_line("12:00  lamp  on and off and on", 24), "12:00  lamp  on and off\n       and on");
        assert_eq!(
            wrap_line("ok    adb   found at the usual place", 26),
            "ok    adb   found at the\n            usual place"
        );
    }

    #[test]
    fn what_cannot_be_broken_stays_where_it_is() {
        let path = "State  /a/very/long/path/that/fits/no/line";
        assert_eq!(wrap_line(path, 20), path);
        assert_eq!(wrap_line("approve it with `sinew approve X` now", 24), "approve it with\n`sinew approve X` now");
        assert_eq!(wrap_line("a `b c d e f g h i j` k", 10), "a `b c d e\nf g h i j`\nk");
        assert_eq!(wrap_line("an open ` quote is no quote", 12), "an open `\nquote is no\nquote");
    }

    #[test]
    fn colours_take_no_room() {
        let line = "\x1b[1mone\x1b[0m two three";
        assert_eq!(visible(line), 13);
        assert_eq!(wrap_line(line, 13), line);
        assert_eq!(wrap_line(line, 8), "\x1b[1mone\x1b[0m two\nthree");
    }
}
