//! Prints an XML file of an APK as `aapt dump xmltree` does, without what only a packager needs. A script
//! compares the two on other people's apps: `cargo run -p sinew-apps --example xmltree FILE.apk ENTRY`.

use std::path::Path;

use sinew_apps::apk::{ApkFile, XmlElement, XmlValue, read_tree};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, entry] = arguments.as_slice() else { return Err("usage: xmltree FILE.apk ENTRY".into()) };
    let tree = read_tree(&ApkFile::open(Path::new(file))?, entry).await?;
    show(&tree, 0);
    Ok(())
}

fn show(element: &XmlElement, depth: usize) {
    let indent = "  ".repeat(depth);
    println!("{indent}E: {} (line={})", element.name, element.line);
    for attribute in &element.attributes {
        let value = match &attribute.value {
            XmlValue::Text(text) => format!("{:?}", text),
            XmlValue::Reference(id) => format!("@0x{id:x}"),
            XmlValue::Number(number) => format!("(number)0x{:x}", *number as u32),
            XmlValue::Bool(truth) => format!("(bool){truth}"),
            XmlValue::Named(name) => format!("@{name}"),
            XmlValue::Other { kind, data } => format!("(type 0x{kind:x})0x{data:x}"),
        };
        let prefix = if attribute.android { "android:" } else { "" };
        println!("{indent}  A: {prefix}{}={value}", attribute.name);
    }
    for child in &element.children {
        show(child, depth + 1);
    }
}
