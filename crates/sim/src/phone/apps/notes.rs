//! Notes: a list, an editor, and a question before deleting.

use super::super::act::{AppScreen, Dialog, TextField, TouchAction};
use super::super::art::Art;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, scroller, space, stack, view};
use super::parts::{badge, field, symbol, toolbar};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NoteEntry {
    pub number: u32,
    pub title: String,
    pub body: String,
}

impl NoteEntry {
    pub(crate) fn shown_title(&self) -> &str {
        if self.title.is_empty() { "Untitled" } else { &self.title }
    }
}

#[derive(Debug)]
pub(crate) struct Notes {
    notes: Vec<NoteEntry>,
    next: u32,
}

impl Default for Notes {
    fn default() -> Notes {
        let note =
            |number, title: &str, body: &str| NoteEntry { number, title: title.to_owned(), body: body.to_owned() };
        Notes {
            notes: vec![
                note(3, "Shopping", "Bread\nApples 🍎\nCrème fraîche\n½ kg rice"),
                note(2, "שיעור עברית", "שלום עולם\nHello (world) → שלום"),
                note(1, "Ideas", "A map that zooms. مرحبا بالعالم\nΚαλημέρα κόσμε, Привет, мир!"),
            ],
            next: 4,
        }
    }
}

impl Notes {
    pub(crate) fn find(&self, number: u32) -> Option<&NoteEntry> {
        self.notes.iter().find(|note| note.number == number)
    }

    pub(crate) fn find_mut(&mut self, number: u32) -> Option<&mut NoteEntry> {
        self.notes.iter_mut().find(|note| note.number == number)
    }

    /// A new, empty note, on top of the list.
    pub(crate) fn create(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        self.notes.insert(0, NoteEntry { number, title: String::new(), body: String::new() });
        number
    }

    pub(crate) fn delete(&mut self, number: u32) {
        self.notes.retain(|note| note.number != number);
    }
}

pub(super) fn list(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let cards = machine.notes.notes.iter().map(|note| {
        let first = note.body.lines().find(|line| !line.trim().is_empty()).unwrap_or("No text");
        column([
            label(note.shown_title()).id("note_title").size(17.0).bold().color(theme.text).one_line().wide(),
            space(4.0),
            label(first).id("note_snippet").size(14.5).color(theme.dim).one_line().wide(),
        ])
        .class("FrameLayout")
        .id("note_card")
        .pad(18.0, 16.0)
        .back(theme.surface)
        .corner(18.0)
        .border(theme.line)
        .on_tap(TouchAction::Open(AppScreen::Note(note.number)))
        .on_hold(TouchAction::Ask(Dialog::DeleteNote(note.number)))
    });
    let empty = machine.notes.notes.is_empty();
    let body: Vec<View> = match empty {
        true => vec![
            label("No notes yet").id("empty").size(17.0).color(theme.dim).wide().align(Align::Centre).pad(0.0, 80.0),
        ],
        false => vec![column(cards).gap(12.0).pad(16.0, 8.0), space(90.0)],
    };
    let new = view("ImageButton")
        .id("new_note")
        .says("New note")
        .width(60.0)
        .height(60.0)
        .back(theme.accent)
        .corner(20.0)
        .color(theme.on_accent)
        .art(Art::Icon('+'))
        .on_tap(TouchAction::NewNote);
    stack([
        column([
            toolbar(machine, "Notes", false, Vec::new()),
            scroller("notes", machine.offset("notes"), body).id("notes_list"),
        ])
        .fill(),
        stack([new.corner_of_stack(Align::End, Align::End)]).fill().pad(20.0, 20.0).decoration(),
    ])
    .back(theme.back)
    .fill()
}

pub(super) fn editor(machine: &PhoneMachine, number: u32) -> View {
    let theme = machine.theme();
    let Some(note) = machine.notes.find(number) else {
        return column([
            toolbar(machine, "Notes", true, Vec::new()),
            label("This note is gone").id("empty").color(theme.dim).pad(20.0, 20.0),
        ])
        .fill();
    };
    let buttons = vec![
        symbol(machine, '📋', "Copy note", TouchAction::CopyNote(number)).id("action_copy"),
        symbol(machine, '🚮', "Delete note", TouchAction::Ask(Dialog::DeleteNote(number))).id("action_delete"),
    ];
    let lines = note.body.lines().count();
    let count =
        format!("{} characters, {lines} {}", note.body.chars().count(), if lines == 1 { "line" } else { "lines" });
    let body = field(machine, TextField::NoteBody, "Write something").id("note_body").size(17.0).pad(4.0, 6.0);
    // An empty or short note can be touched anywhere on the page.
    let page = scroller(
        "note",
        machine.offset("note"),
        [
            field(machine, TextField::NoteTitle, "Title").id("note_title").size(23.0).bold().pad(4.0, 10.0),
            body,
            view("View").decoration().wide().height(160.0).on_tap(TouchAction::Nothing),
        ],
    )
    .id("note_scroll")
    .pad(18.0, 0.0);
    column([
        toolbar(machine, "Edit note", true, buttons),
        page,
        row([
            badge('✓', theme.accent, 18.0),
            space(8.0),
            label(count).id("note_status").size(12.5).color(theme.dim).across(Align::Centre),
        ])
        .pad(20.0, 8.0),
    ])
    .back(theme.back)
    .fill()
}
