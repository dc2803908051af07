//! `sinew serial`: the serial ports of this machine.

use serde_json::json;
use sinew_serial::PortTree;

use crate::error::CliError;
use crate::terminal::{Printer, Table, print, print_json};

pub fn run(printer: Printer) -> Result<(), CliError> {
    let ports = PortTree::default().list();
    if printer.is_json() {
        let rows = ports.iter().map(|port| {
            let usb = port.usb.clone().unwrap_or_default();
            let path = port.path.display().to_string();
            json!({"path": path, "usb": usb.product_id, "serial_number": usb.serial_number, "product": usb.product})
        });
        print_json(&json!({"ports": rows.collect::<Vec<_>>()}));
        return Ok(());
    }
    if ports.is_empty() {
        print("No serial port has a device. Plug a board in; on other systems than Linux, name its `path`.\n");
        return Ok(());
    }
    let mut table = Table::new(["PATH", "USB", "SERIAL NUMBER", "PRODUCT"]).cut(&["PRODUCT"]);
    for port in ports {
        let usb = port.usb.unwrap_or_default();
        let path = port.path.display().to_string();
        table.row([path, usb.product_id, usb.serial_number, usb.product].map(|text| (None, text)));
    }
    print(&printer.table(&table));
    print("Name one in sinew.toml: [[serial]] with its `path`, or with its serial number as `usb`\n");
    Ok(())
}
