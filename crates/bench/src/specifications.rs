//! Tool specifications: how long `sinew spec lint` takes for a thousand documents, and `sinew spec diff` for two lists
//! of a thousand tools, each as a whole process.

use std::path::Path;

use serde_json::{Value, json};

use crate::load::{bench_error, percentile};
use crate::process::{Scratch, run_to_end};
use crate::report::{Figure, Report};
use crate::{BenchPlan, Error};

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let count = if plan.is_quick() { 50 } else { 1000 };
    let folder = scratch.folder("specifications");
    write_documents(&folder, count).await?;
    let documents = folder.join("documents").display().to_string();
    let (times, page) = repeated(plan, &["spec", "lint", "--quiet", &documents]).await?;
    if !page.contains(&format!("in {count} files")) {
        return Err(bench_error("the documents of the benchmark were not checked"));
    }
    report.push(figure("lint_ms", &format!("spec lint of {count} documents"), times, 300.0));

    let lists = [("old.json", 0), ("new.json", 1)].map(|(name, shift)| (folder.join(name), shift));
    for (file, shift) in &lists {
        let tools: Vec<Value> = (0..count).map(|index| tool(index, *shift)).collect();
        write(file, &json!({ "tools": tools }).to_string())?;
    }
    let [old, new] = lists.map(|(file, _)| file.display().to_string());
    let (times, page) = repeated(plan, &["spec", "diff", &old, &new]).await?;
    if !page.contains("Required bump: major") {
        return Err(bench_error("the lists of the benchmark were not compared"));
    }
    report.push(figure("diff_ms", &format!("spec diff of two lists of {count} tools"), times, 60.0));
    Ok(())
}

fn figure(key: &'static str, label: &str, times: Vec<f64>, most: f64) -> Figure {
    Figure::at_most(key, label, percentile(&mut times.clone(), 0.5), "ms", most).with(times)
}

/// The times of several runs in milliseconds, and what the last one printed.
async fn repeated(plan: &BenchPlan, arguments: &[&str]) -> Result<(Vec<f64>, String), Error> {
    let (mut times, mut page) = (Vec::new(), String::new());
    for _ in 0..plan.starts {
        let (took, printed) = run_to_end(arguments).await?;
        times.push(took.as_secs_f64() * 1e3);
        page = printed;
    }
    Ok((times, page))
}

/// Documents that the program itself prints from a tool, so that they are complete, each with a tool of its own name.
async fn write_documents(folder: &Path, count: usize) -> Result<(), Error> {
    let list = folder.join("tool.json");
    write(&list, &json!({"tools": [tool(0, 0)]}).to_string())?;
    let (_, page) = run_to_end(&["spec", "render", &list.display().to_string()]).await?;
    for index in 0..count {
        let home = folder.join("documents").join(format!("module-{index}"));
        let page = page.replace("set_lamp_0", &format!("set_lamp_{index}"));
        write(&home.join("MCP_TOOL_SPECIFICATION.md"), &page)?;
    }
    Ok(())
}

/// A tool with eight nested parameters; those of the second version have other limits and one other name.
fn tool(index: usize, shift: usize) -> Value {
    let parameter = |number: usize| {
        let schema = json!({
            "type": "object",
            "description": format!("Light {number} of lamp {index}, with its level and mode."),
            "examples": [{"level": 50}],
            "properties": {
                "level": {"type": "integer", "minimum": shift * (number % 3), "maximum": 100, "description": "Percent."},
                "mode": {"type": "string", "enum": ["soft", "hard"], "description": "How the light changes."},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by."},
            },
            "required": ["level"],
        });
        (format!("light_{}", number + shift * usize::from(number == 7)), schema)
    };
    let properties: serde_json::Map<String, Value> = (0..8).map(parameter).collect();
    json!({
        "name": format!("set_lamp_{index}"),
        "description": format!("Sets the lights of lamp {index} and returns their levels."),
        "inputSchema": {"type": "object", "properties": properties, "required": ["light_0", "light_1"]},
        "outputSchema": {
            "type": "object",
            "properties": {
                "status": {"type": "string", "enum": ["success", "failure"], "description": "Whether it worked."},
                "level": {"type": "integer", "description": "Percent now.", "examples": [50]},
            },
            "required": ["status"],
        },
    })
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder
        .and_then(|()| std::fs::write(file, text))
        .map_err(|error| bench_error(format!("{}: {error}", file.display())))
}
