//! Where the parts of a tool specification are in its text. Findings need it; equality ignores it.

use std::collections::HashMap;

use super::table::{Cell, Column};
use crate::json::{JsonFault, JsonKind, JsonMistake, JsonNode};
use crate::model::Section;
use sinew_tool::finding::Span;

#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The tool from its heading to the end of its last section.
    pub whole: Span,
    /// The text of the heading, or the name in a JSON list.
    pub heading: Span,
    /// The name the heading gives.
    pub heading_name: Option<String>,
    /// The invocation name, if it is stated apart from the heading.
    pub name: Option<Span>,
    /// The value of the version line.
    pub version: Option<Span>,
    pub description: Option<Span>,
    /// In the order of the text; a section may occur twice.
    pub sections: Vec<SectionPlace>,
    pub input: SchemaSource,
    pub output: SchemaSource,
    /// The bodies of the fenced examples.
    pub examples: Vec<Span>,
}

#[derive(Clone, Debug)]
pub struct SectionPlace {
    pub section: Section,
    /// The text of the heading, or of the bold label that acts as one.
    pub heading: Span,
    /// Whether it is a real heading, not bold type.
    pub is_heading: bool,
    /// From the heading to the next section.
    pub whole: Span,
    /// Whether it has anything but white space, comments and "not stated".
    pub is_filled: bool,
}

/// The table and the schema that describe input or output.
#[derive(Clone, Debug, Default)]
pub struct SchemaSource {
    pub table: Option<FieldTable>,
    pub schema: Option<JsonNode>,
    /// The schema derived from a JSON object of parameters.
    pub map: Option<serde_json::Value>,
    /// Whether it says that there is nothing to describe.
    pub says_none: bool,
    pub mistakes: Vec<JsonMistake>,
    /// Blocks that should describe it and could not be read at all.
    pub faults: Vec<JsonFault>,
    /// What stands beside what was read and was not read itself, with a sentence about it.
    pub unread: Vec<(String, Span)>,
    /// Tables after the first whose rows nothing else describes.
    pub other_tables: Vec<Span>,
}

#[derive(Clone, Debug)]
pub struct FieldTable {
    pub header: Span,
    /// Empty for a list of bullets.
    pub columns: Vec<Column>,
    pub rows: Vec<FieldRow>,
}

#[derive(Clone, Debug)]
pub struct FieldRow {
    pub span: Span,
    pub name: String,
    pub name_span: Span,
    pub kind: Option<Cell>,
    pub required: Option<Cell>,
    /// Whether that cell answers whether it may be left out.
    pub asks_optional: bool,
    pub default: Option<Cell>,
    pub description: Option<Cell>,
    pub example: Option<Cell>,
    /// The first cell beyond the columns of the table.
    pub surplus: Option<Span>,
}

/// What a "required" cell answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    Yes,
    No,
    /// Under conditions that the cell or the description states.
    Sometimes,
    Unclear,
}

impl Places {
    pub fn section(&self, section: Section) -> Option<&SectionPlace> {
        self.sections.iter().find(|place| place.section == section)
    }

    /// The heading of a section, or of the tool where the section is missing.
    pub fn section_heading(&self, section: Section) -> Span {
        self.section(section).map_or(self.heading, |place| place.heading)
    }
}

impl SchemaSource {
    pub fn row(&self, name: &str) -> Option<&FieldRow> {
        self.table.as_ref()?.rows.iter().find(|row| row.name == name)
    }

    /// The place of each described member, by name.
    pub fn members(&self) -> HashMap<&str, Span> {
        match (&self.schema, &self.table) {
            (Some(node), _) => match node.get("properties").map(|properties| &properties.kind) {
                Some(JsonKind::Object(members)) => {
                    members.iter().map(|member| (member.key.as_str(), member.key_span)).collect()
                }
                _ => HashMap::new(),
            },
            (None, Some(table)) => table.rows.iter().rev().map(|row| (row.name.as_str(), row.name_span)).collect(),
            (None, None) => HashMap::new(),
        }
    }

    /// The place of a JSON pointer into the schema: in the schema where it was written out, else the
    /// row of the table it came from.
    pub fn place(&self, pointer: &str) -> Option<Span> {
        if let Some(node) = &self.schema {
            return Some(node.place(pointer));
        }
        let name = pointer.strip_prefix("/properties/")?.split('/').next()?.replace("~1", "/").replace("~0", "~");
        self.row(&name).map(|row| row.name_span).or_else(|| self.table.as_ref().map(|table| table.header))
    }
}

impl FieldRow {
    /// A row of which only the name is known.
    pub fn named(name: &str, span: Span) -> FieldRow {
        FieldRow {
            span,
            name: name.to_owned(),
            name_span: span,
            kind: None,
            required: None,
            asks_optional: false,
            default: None,
            description: None,
            example: None,
            surplus: None,
        }
    }

    /// Whether its type is an object, or a list of them.
    pub(crate) fn has_members(&self) -> bool {
        let kind = self.kind.as_ref().and_then(|cell| super::types::read(&cell.text)).map(|reading| reading.schema);
        let is_object = |schema: &serde_json::Value| schema.get("type").is_some_and(|kind| kind == "object");
        kind.is_some_and(|schema| is_object(&schema) || schema.get("items").is_some_and(is_object))
    }

    pub fn required(&self) -> Required {
        let Some(cell) = &self.required else { return Required::Unclear };
        let (answer, names_itself) = answer(&cell.text);
        match answer {
            Required::Yes if self.asks_optional && !names_itself => Required::No,
            Required::No if self.asks_optional && !names_itself => Required::Yes,
            answer => answer,
        }
    }
}

/// What a cell answers, and whether it does so whatever the question is: "optional" means itself in any column.
pub(crate) fn answer(cell: &str) -> (Required, bool) {
    let text = super::prose::unmark(cell).to_lowercase();
    let word = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let answer = match word {
        "yes" | "no" if text.starts_with("yes/no") || text.starts_with("no/yes") => Required::Unclear,
        "yes" | "true" | "required" | "y" if text.len() > word.len() && text.contains("if ") => Required::Sometimes,
        "yes" | "true" | "required" | "mandatory" | "y" | "x" | "must" | "ja" | "oui" | "always" => Required::Yes,
        "sí" | "si" | "sì" | "sim" | "да" | "是" | "必填" | "必须" | "必需" | "はい" | "必須" | "예" | "필수" => {
            Required::Yes
        }
        "obligatoire" | "obligatorio" | "obrigatório" | "pflicht" | "verplicht" | "erforderlich" => Required::Yes,
        "not" if text.starts_with("not required") => Required::No,
        "no" | "false" | "optional" | "n" | "nein" | "non" | "never" => Required::No,
        "não" | "nee" | "нет" | "否" | "可选" | "选填" | "いいえ" | "任意" | "아니요" | "선택" => {
            Required::No
        }
        "facultatif" | "opcional" | "opzionale" | "optioneel" | "необязательно" => Required::No,
        "conditional" | "conditionally" | "sometimes" | "depends" | "one" | "either" => Required::Sometimes,
        _ if text.starts_with(['✓', '✔', '✅', '☑', '●', '√']) || text == "1" => Required::Yes,
        _ if text.starts_with(['✗', '✘', '❌', '☐', '○']) || text == "0" => Required::No,
        _ => Required::Unclear,
    };
    let names_itself = matches!(
        word,
        "required" | "mandatory" | "must" | "not" | "optional" | "必填" | "必须" | "可选" | "必須" | "任意"
    );
    (answer, names_itself)
}
