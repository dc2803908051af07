//! Styles of HTML elements, as far as they hide text.

use std::collections::HashMap;

/// How far outside the page something is put that nobody shall see, in pixels.
const FAR: f64 = 100.0;

/// The declarations of a style attribute.
pub(super) struct Style {
    properties: HashMap<String, String>,
}

impl Style {
    pub(super) fn read(text: &str) -> Style {
        let text = without_escapes(&without_comments(text)).to_lowercase();
        let declarations = text.split(';').filter_map(|declaration| {
            let (key, value) = declaration.split_once(':')?;
            let value = value.split('!').next().unwrap_or(value);
            Some((key.trim().to_owned(), value.trim().to_owned()))
        });
        Style { properties: declarations.collect() }
    }

    /// A property that an attribute stands for; one in the style counts more.
    pub(super) fn add(&mut self, property: &str, value: String) {
        self.properties.entry(property.to_owned()).or_insert(value);
    }

    fn get(&self, key: &str) -> &str {
        self.properties.get(key).map_or("", String::as_str)
    }

    /// Whether a reader sees nothing of the element.
    pub(super) fn hides(&self) -> bool {
        if self.properties.is_empty() {
            return false;
        }
        let is_faint = |share: &str| share_of(share).is_some_and(|share| share <= 0.05);
        self.get("display") == "none"
            || matches!(self.get("visibility"), "hidden" | "collapse")
            || self.get("content-visibility") == "hidden"
            || is_faint(self.get("opacity"))
            || function(self.get("filter"), "opacity").is_some_and(is_faint)
            || is_tiny(self.get("font-size"))
            || self.get("font").split([' ', '/']).any(|part| is_tiny(part) && share_of(part).is_none_or(|n| n == 0.0))
            || self.has_invisible_color()
            || self.is_cut_off()
            || self.is_outside()
    }

    fn has_invisible_color(&self) -> bool {
        let fill = ["-webkit-text-fill-color", "color"].iter().map(|key| self.get(key)).find(|fill| !fill.is_empty());
        let Some(text) = fill.map(color) else { return false };
        let behind = ["background-color", "background"].iter().map(|key| self.get(key)).find(|it| !it.is_empty());
        // Pages are white unless they say otherwise.
        text == "transparent" || text == behind.map_or_else(|| "#ffffff".to_owned(), color)
    }

    /// Whether the element has no size and shows nothing beyond it.
    fn is_cut_off(&self) -> bool {
        let is_nothing = |key: &str| length(self.get(key)).is_some_and(|size| size.abs() <= 1.0);
        let is_cropped = ["overflow", "overflow-x", "overflow-y"]
            .iter()
            .any(|key| self.get(key).split(' ').any(|word| matches!(word, "hidden" | "clip")));
        let clips = |shape: &str| function(self.get("clip-path"), shape).map(str::to_owned);
        is_cropped && ["width", "height", "max-width", "max-height"].iter().any(|key| is_nothing(key))
            || function(self.get("clip"), "rect").is_some_and(|sides| {
                let sides: Vec<Option<f64>> =
                    sides.split([',', ' ']).filter(|side| !side.is_empty()).map(length).collect();
                sides.iter().all(|side| side.is_some_and(|side| side.abs() <= 1.0))
            })
            || clips("inset").is_some_and(|inset| share_of(inset.split(' ').next().unwrap_or("")) >= Some(0.5))
            || clips("circle").is_some_and(|circle| is_tiny(circle.split(' ').next().unwrap_or("")))
            || ["scale", "scalex", "scaley"]
                .iter()
                .any(|name| function(self.get("transform"), name).is_some_and(|by| share_of(by) == Some(0.0)))
            || share_of(self.get("scale")) == Some(0.0)
    }

    fn is_outside(&self) -> bool {
        let is_far = |value: &str| length(value).is_some_and(|at| at <= -FAR);
        let is_placed = matches!(self.get("position"), "absolute" | "fixed" | "relative");
        let sides = ["left", "top", "right", "bottom", "inset"];
        let moved = ["translate", "translatex", "translatey", "translate3d"].iter();
        is_placed && sides.iter().any(|side| self.get(side).split(' ').any(is_far))
            || ["text-indent", "margin-left", "margin-top", "margin"]
                .iter()
                .any(|key| self.get(key).split(' ').any(is_far))
            || moved
                .filter_map(|name| function(self.get("transform"), name))
                .any(|by| by.split(',').any(|part| is_far(part.trim())))
            || self.get("translate").split(' ').any(is_far)
    }
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Style rules may be written with escapes: `d\69splay`.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let digits = after.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        match u32::from_str_radix(&after[..digits], 16).ok().and_then(char::from_u32) {
            Some(character) => {
                plain.push(character);
                rest = after[digits..].strip_prefix(' ').unwrap_or(&after[digits..]);
            }
            None => rest = after,
        }
    }
    plain + rest
}

/// The arguments of a function: `rect(0 0 0 0)`.
fn function<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let at = value.find(&format!("{name}("))?;
    let arguments = &value[at + name.len() + 1..];
    arguments.split(')').next()
}

/// A number and its unit.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// A length in pixels, about.
fn length(text: &str) -> Option<f64> {
    let (value, unit) = number(text)?;
    let pixels = match unit {
        "" | "px" => 1.0,
        "pt" => 1.3,
        "em" | "rem" | "ch" | "ex" => 16.0,
        "%" | "vw" | "vh" => 10.0,
        "cm" | "in" => 40.0,
        "mm" => 4.0,
        _ => return None,
    };
    Some(value * pixels)
}

fn share_of(text: &str) -> Option<f64> {
    match number(text)? {
        (value, "") => Some(value),
        (value, "%") => Some(value / 100.0),
        _ => None,
    }
}

fn is_tiny(size: &str) -> bool {
    match number(size) {
        Some((value, "%")) => value <= 10.0,
        _ => length(size).is_some_and(|size| size <= 1.6),
    }
}

/// A color in one spelling, as far as colors are used to hide text.
fn color(value: &str) -> String {
    let value: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let numbers = |name: &str| -> Option<Vec<f64>> {
        value.starts_with(name).then(|| function(&value, name)).flatten()?.split([',', '/']).map(share_of).collect()
    };
    let parts = numbers("rgba").or_else(|| numbers("rgb"));
    match (value.as_str(), parts.as_deref()) {
        ("white", _) => "#ffffff".to_owned(),
        ("black", _) => "#000000".to_owned(),
        ("transparent", _) => "transparent".to_owned(),
        (_, Some([_, _, _, clear])) if *clear <= 0.05 => "transparent".to_owned(),
        (_, Some([red, green, blue, ..])) => format!("#{:02x}{:02x}{:02x}", *red as u8, *green as u8, *blue as u8),
        (hex, _) if hex.starts_with('#') => match hex.len() {
            5 if hex.ends_with('0') => "transparent".to_owned(),
            9 if hex.ends_with("00") => "transparent".to_owned(),
            4 | 5 => hex.chars().skip(1).take(3).fold("#".to_owned(), |all, c| format!("{all}{c}{c}")),
            _ => hex.get(..7).unwrap_or(hex).to_owned(),
        },
        (other, _) => other.to_owned(),
    }
}
