//! The file that a new routine starts from.

use sinew_spec::print;

use crate::routine::SECTION;

/// A routine with every section to fill in, and two steps as an example.
pub fn new_from_template(name: &str) -> String {
    let specification = print::new_from_template(name);
    let steps = "\
- call: self.get_device_status
  device: kitchen
  as: status
- return: ${status}
";
    format!("{}\n### {SECTION}\n\n```yaml\n{steps}```\n", specification.trim_end())
}
