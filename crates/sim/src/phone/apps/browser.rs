//! A browser that shows which link it was asked to open, and never fetches it.

use super::super::act::TextField;
use super::super::machine::PhoneMachine;
use super::super::view::{View, column, label, row, space, view};
use super::parts::{badge, field};

#[derive(Debug)]
pub(crate) struct Browser {
    pub address: String,
    page: String,
}

impl Default for Browser {
    fn default() -> Browser {
        Browser { address: "about:blank".to_owned(), page: "about:blank".to_owned() }
    }
}

impl Browser {
    pub(crate) fn visit(&mut self, address: &str) {
        let full = if address.contains(':') { address.to_owned() } else { format!("https://{address}") };
        (self.address, self.page) = (full.clone(), full);
    }
}

pub(super) fn screen(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let page = &machine.browser.page;
    let bar = row([
        badge('🌐', theme.dim, 26.0),
        space(10.0),
        field(machine, TextField::Address, "Type a web address").id("url_bar").size(15.0).height(46.0),
    ])
    .back(theme.tint)
    .corner(24.0)
    .pad(14.0, 0.0)
    .height(48.0);
    let words = match page.as_str() {
        "about:blank" => "A quiet page. Type an address above.".to_owned(),
        link => format!("This phone has no internet. It was asked to open {link}"),
    };
    let content = View {
        text: page.clone(),
        ..column([
            label(page.as_str()).class("View").id("page_address").size(19.0).bold().color(theme.text),
            space(12.0),
            label(words).class("View").id("page_text").size(16.0).color(theme.dim),
        ])
    };
    column([
        space(8.0),
        bar,
        space(8.0),
        content.class("WebView").id("webview").pad(22.0, 22.0).back(theme.surface).corner(18.0).fill(),
        view("View").decoration().wide().height(12.0),
    ])
    .pad(12.0, 0.0)
    .back(theme.back)
    .fill()
}
