//! What `--fix` would change, as a unified diff.

use std::fmt::Write;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Beyond this many pairs of lines the changed middle is shown as one replacement.
const MAX_PAIRS: usize = 4_000_000;

/// A unified diff of two texts; empty if they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let edits = edits(&old, &new);
    let mut page = format!("--- {path}\n+++ {path}\n");
    let mut at = 0;
    while let Some(first) = edits[at..].iter().position(|edit| !edit.is_kept()).map(|offset| at + offset) {
        let start = first.saturating_sub(CONTEXT).max(at);
        let mut end = first + 1;
        let mut quiet = 0;
        while end < edits.len() && quiet <= 2 * CONTEXT {
            quiet = if edits[end].is_kept() { quiet + 1 } else { 0 };
            end += 1;
        }
        let end = end - quiet.saturating_sub(CONTEXT).min(quiet);
        hunk(&mut page, &edits[..start], &edits[start..end]);
        at = end;
    }
    page
}

#[derive(Clone, Copy)]
enum LineEdit<'a> {
    Kept(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl LineEdit<'_> {
    fn is_kept(&self) -> bool {
        matches!(self, LineEdit::Kept(_))
    }
}

fn hunk(page: &mut String, before: &[LineEdit<'_>], edits: &[LineEdit<'_>]) {
    let count = |edits: &[LineEdit<'_>], is_old: bool| {
        edits
            .iter()
            .filter(|edit| !matches!((edit, is_old), (LineEdit::Added(_), true) | (LineEdit::Removed(_), false)))
            .count()
    };
    let (first_old, first_new) = (count(before, true) + 1, count(before, false) + 1);
    let _ = writeln!(page, "@@ -{first_old},{} +{first_new},{} @@", count(edits, true), count(edits, false));
    for edit in edits {
        let _ = match edit {
            LineEdit::Kept(line) => writeln!(page, " {line}"),
            LineEdit::Removed(line) => writeln!(page, "-{line}"),
            LineEdit::Added(line) => writeln!(page, "+{line}"),
        };
    }
}

/// The fewest edits between two texts, from the longest common subsequence of lines.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<LineEdit<'a>> {
    let head = old.iter().zip(new).take_while(|(one, two)| one == two).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(one, two)| one == two).count();
    let (one, two) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut found: Vec<LineEdit<'a>> = old[..head].iter().map(|line| LineEdit::Kept(line)).collect();
    if one.len() * two.len() > MAX_PAIRS {
        found.extend(one.iter().map(|line| LineEdit::Removed(line)));
        found.extend(two.iter().map(|line| LineEdit::Added(line)));
    } else {
        let width = two.len() + 1;
        let mut longest = vec![0u32; (one.len() + 1) * width];
        for i in (0..one.len()).rev() {
            for j in (0..two.len()).rev() {
                longest[i * width + j] = match one[i] == two[j] {
                    true => longest[(i + 1) * width + j + 1] + 1,
                    false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < one.len() || j < two.len() {
            if i < one.len() && j < two.len() && one[i] == two[j] {
                found.push(LineEdit::Kept(one[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == two.len() || i < one.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
                found.push(LineEdit::Removed(one[i]));
                i += 1;
            } else {
                found.push(LineEdit::Added(two[j]));
                j += 1;
            }
        }
    }
    found.extend(old[old.len() - tail..].iter().map(|line| LineEdit::Kept(line)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_its_neighbours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9";
        assert_eq!(
            unified("a.md", old, new),
            "--- a.md\n+++ a.md\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(unified("a.md", old, old), "");
    }

    #[test]
    fn changes_far_apart_are_hunks_of_their_own() {
        let old: Vec<String> = (0..40).map(|line| line.to_string()).collect();
        let mut new = old.clone();
        new[2] = "x".to_owned();
        new.remove(30);
        let page = unified("a", &old.join("\n"), &new.join("\n"));
        assert_eq!(page.matches("@@ -").count(), 2, "{page}");
        assert!(page.contains("@@ -28,7 +28,6 @@"), "{page}");
    }
}
