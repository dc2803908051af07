//! A secure screen: no picture of it can be taken, and what it keeps is data-sensitive.

use super::super::act::{TextField, TouchAction};
use super::super::machine::PhoneMachine;
use super::super::view::{View, column, label, space};
use super::parts::{button, field, toolbar};

pub(super) fn screen(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let mut passphrase = field(machine, TextField::Passphrase, "Passphrase")
        .id("passphrase")
        .size(17.0)
        .height(54.0)
        .pad(18.0, 0.0)
        .back(theme.tint)
        .corner(16.0);
    passphrase.state.password = true;
    let mut rows = vec![
        toolbar(machine, "Vault", false, Vec::new()),
        label("What is kept here cannot be photographed.").id("vault_note").size(15.0).color(theme.dim).pad(12.0, 6.0),
        space(12.0),
        passphrase,
        space(16.0),
        button(machine, "Open", TouchAction::Reveal).id("open_vault").disabled(machine.passphrase.is_empty()),
        space(24.0),
    ];
    if machine.revealed {
        let secret = |id, text: &str| label(text).id(id).size(19.0).color(theme.text).pad(0.0, 4.0);
        let mut card = column([
            label("Savings account").id("secret_title").size(13.5).color(theme.dim),
            secret("secret_number", "DE00 1234 5678 9000"),
            secret("secret_balance", "12 345.67 €"),
        ])
        .id("secret_card")
        .pad(20.0, 18.0)
        .back(theme.surface)
        .corner(20.0);
        card.sensitive = true;
        rows.push(card);
    }
    column(rows).pad(16.0, 0.0).back(theme.back).fill()
}
