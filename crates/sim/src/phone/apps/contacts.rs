//! Two hundred contacts, a search, and a card for each.

use super::super::act::{AppScreen, Dialog, TextField, TouchAction};
use super::super::canvas::Rgba;
use super::super::geometry::PixelRect;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, list as long_list, row, space};
use super::parts::{badge, button, entry, field, symbol, toolbar};

const FIRST: [&str; 20] = [
    "Ada",
    "Björn",
    "Carlos",
    "Dilnoza",
    "Ελένη",
    "Fatima",
    "Grace",
    "Hiro",
    "Inès",
    "Jürgen",
    "Kateřina",
    "Łukasz",
    "Mary",
    "Nia",
    "Ольга",
    "Paulo",
    "שרה",
    "Tariq",
    "Yara",
    "Zoë",
];
const LAST: [&str; 10] =
    ["Anders", "Brontë", "Costa", "Dvořák", "Eriksen", "Franklin", "García", "Hopper", "Ivanova", "Jansen"];

#[derive(Debug)]
pub(crate) struct Contacts {
    names: Vec<Option<String>>,
    pub search: String,
}

impl Default for Contacts {
    fn default() -> Contacts {
        let mut names: Vec<String> =
            FIRST.iter().flat_map(|first| LAST.iter().map(move |last| format!("{first} {last}"))).collect();
        names.sort();
        Contacts { names: names.into_iter().map(Some).collect(), search: String::new() }
    }
}

impl Contacts {
    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).and_then(Option::as_deref).unwrap_or("Deleted contact")
    }

    pub(crate) fn delete(&mut self, index: usize) {
        if let Some(name) = self.names.get_mut(index) {
            *name = None;
        }
    }

    /// The numbers of the contacts that fit the search.
    fn found(&self) -> Vec<usize> {
        let wanted = self.search.to_lowercase();
        let fits = |name: &String| wanted.is_empty() || name.to_lowercase().contains(&wanted);
        (0..self.names.len()).filter(|index| self.names[*index].as_ref().is_some_and(fits)).collect()
    }
}

fn phone_number(index: usize) -> String {
    format!("+49 555 01{:02} {:03}", index % 100, index * 37 % 1000)
}

fn color(index: usize) -> Rgba {
    let colors = [0x5a45b5, 0x00796b, 0xad1457, 0x1565c0, 0xef6c00, 0x2e7d32, 0x6d4c41];
    Rgba::hex(colors[index % colors.len()])
}

/// Row height in dp.
const ROW: f32 = 68.0;

pub(super) fn list(machine: &PhoneMachine, area: PixelRect) -> View {
    let theme = machine.theme();
    let contacts = &machine.contacts;
    let found = contacts.found();
    let build = |position: usize| {
        let index = found[position];
        let name = contacts.name(index);
        let initial = name.chars().next().unwrap_or('?');
        entry(machine, badge(initial, color(index), 42.0), name, &phone_number(index))
            .class("ViewGroup")
            .id("contact_row")
            .on_tap(TouchAction::Open(AppScreen::Contact(index)))
    };
    let offset = machine.offset("contacts").clamp(0, (found.len() as f32 * ROW * machine.scale()) as i32);
    let window = (offset, area.height());
    let rows = long_list("contacts", window, machine.scale(), (ROW, found.len()), build).id("contact_list");
    let mut search = vec![
        badge('🔍', theme.dim, 26.0),
        space(10.0),
        field(machine, TextField::Search, "Search contacts").id("search_view").size(16.0).height(46.0),
    ];
    if !contacts.search.is_empty() {
        search.push(symbol(machine, '✕', "Clear search", TouchAction::ClearSearch).id("search_close").height(40.0));
    }
    let bar = row(search).back(theme.tint).corner(24.0).pad(14.0, 0.0).height(48.0);
    let count = match found.len() {
        1 => "1 contact".to_owned(),
        many => format!("{many} contacts"),
    };
    column([
        toolbar(machine, "Contacts", false, Vec::new()),
        column([bar]).pad(16.0, 0.0),
        label(count).id("contact_count").size(13.0).color(theme.dim).pad(22.0, 10.0),
        rows,
    ])
    .back(theme.back)
    .fill()
}

pub(super) fn card(machine: &PhoneMachine, index: usize) -> View {
    let theme = machine.theme();
    let name = machine.contacts.name(index);
    let delete =
        symbol(machine, '🚮', "Delete contact", TouchAction::Ask(Dialog::DeleteContact(index))).id("menu_delete");
    let initial = name.chars().next().unwrap_or('?');
    column([
        toolbar(machine, "", true, vec![delete]),
        badge(initial, color(index), 120.0),
        space(18.0),
        label(name).id("large_title").size(28.0).color(theme.text).wide().align(Align::Centre),
        space(6.0),
        label(phone_number(index)).id("phone_number").size(16.0).color(theme.dim).wide().align(Align::Centre),
        space(28.0),
        row([
            button(machine, "Call", TouchAction::Nothing).id("call_button"),
            button(machine, "Message", TouchAction::Nothing).id("message_button"),
        ])
        .gap(14.0)
        .pack(Align::Centre),
    ])
    .back(theme.back)
    .fill()
}
