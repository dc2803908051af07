//! The tools of the example boards: a light, and the board's age. `examples/qemu-board` has the same.

use sinew_wire::device::{Board, Property, ToolSpec};

pub fn board(
    name: &'static str,
    mut set_light: impl FnMut(bool) + Send + 'static,
    seconds: impl Fn() -> u64 + Send + 'static,
) -> Board {
    Board::new(name, "1.0.0")
        .tool(
            ToolSpec::new("self.light.switch", "Switch the light on the board on or off.")
                .with(Property::boolean("on").describe("true for light")),
            move |arguments| {
                set_light(arguments.boolean("on")?);
                Ok(true.into())
            },
        )
        .tool(ToolSpec::new("self.get_uptime", "Seconds since the board was started."), move |_| {
            Ok((seconds() as i64).into())
        })
}
