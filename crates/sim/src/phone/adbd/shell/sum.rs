//! `$((…))`: sums of whole numbers, as the phone's shell computes them.

/// Parentheses and signs inside one another; deeper is refused.
const DEEPEST: usize = 64;

/// The value of a sum; a variable that is not a number counts as 0.
pub(super) fn value(text: &str, variable: &dyn Fn(&str) -> String) -> Result<i64, String> {
    let mut sum = Sum { rest: text.trim(), variable, depth: 0 };
    let value = sum.binary(0)?;
    match sum.rest.trim() {
        "" => Ok(value),
        rest => Err(format!("unexpected '{}'", rest.chars().take(10).collect::<String>())),
    }
}

struct Sum<'a> {
    rest: &'a str,
    variable: &'a dyn Fn(&str) -> String,
    depth: usize,
}

/// Operators, those that bind least first. Longer ones stand before those they begin with.
const LEVELS: [&[&str]; 6] = [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

impl Sum<'_> {
    fn take(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.rest = self.rest.trim_start();
        let sign = signs.iter().copied().find(|sign| self.rest.starts_with(sign))?;
        self.rest = &self.rest[sign.len()..];
        Some(sign)
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(signs) = LEVELS.get(level) else { return self.single() };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.take(signs) {
            let right = self.binary(level + 1)?;
            left = reckon(left, sign, right)?;
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("too deep".to_owned());
        }
        let value = match self.take(&["(", "-", "+", "!"]) {
            Some("(") => {
                let value = self.binary(0)?;
                self.take(&[")"]).map(|_| value).ok_or("missing )")?
            }
            Some("-") => self.single()?.wrapping_neg(),
            Some("!") => i64::from(self.single()? == 0),
            Some(_) => self.single()?,
            None => self.operand()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn operand(&mut self) -> Result<i64, String> {
        let rest = self.rest.trim_start();
        let rest = rest.strip_prefix('$').unwrap_or(rest);
        let end = rest.find(|ch: char| !ch.is_ascii_alphanumeric() && ch != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        match word.chars().next() {
            None => Err("a number is missing".to_owned()),
            Some('0'..='9') => number(word).ok_or_else(|| format!("bad number '{word}'")),
            Some(_) => Ok(number(&(self.variable)(word)).unwrap_or_default()),
        }
    }
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn reckon(left: i64, sign: &str, right: i64) -> Result<i64, String> {
    Ok(match sign {
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" | "%" if right == 0 => return Err("divisor is zero".to_owned()),
        "/" => left.wrapping_div(right),
        "%" => left.wrapping_rem(right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "&&" => i64::from(left != 0 && right != 0),
        _ => i64::from(left != 0 || right != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_reckoned_as_a_shell_does() {
        let of = |text: &str| value(text, &|name| if name == "x" { "7".to_owned() } else { String::new() });
        for (text, expect) in [
            ("1 + 2 * 3", Ok(7)),
            ("(1 + 2) * -3", Ok(-9)),
            ("x % 4 == 3 && !y", Ok(1)),
            ("$x - x", Ok(0)),
            ("0x10 / 3", Ok(5)),
            ("9223372036854775807 + 1", Ok(i64::MIN)),
            ("1 / 0", Err("divisor is zero".to_owned())),
            ("", Err("a number is missing".to_owned())),
        ] {
            assert_eq!(of(text), expect, "{text}");
        }
        assert!(of(&"(".repeat(5000)).is_err());
        assert!(of("1 2").is_err());
    }
}
