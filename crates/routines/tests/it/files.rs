//! Routines for the tests.

pub const GOOD_NIGHT: &str = "\
# Good night

## Tool: good_night

**Version**: 1.2.0

### 1. Tool Purpose and Description

Switches the lights of a room off and turns the volume down.

### 2. Invocation Name

`good_night`

### 3. Input Schema (Parameters)

| Name | Type | Required | Description | Example |
|---|---|---|---|---|
| `room` | string | Yes | The room, by the name of its relay board. | `bedroom` |
| `volume` | integer | No | The volume from 0 to 100. | `10` |

### 4. Output Schema (Return Value)

| Name | Type | Required | Description | Example |
|---|---|---|---|---|
| `room` | string | Yes | The room that is dark now. | `bedroom` |

### 5. Error Handling

- `DeviceAway`: a board is not connected.

### 6. Idempotency

- **Idempotent**: Yes
- **Explanation**: the lights are off however often it is called.

### 7. Usage Examples (for MCP context)

```json
{\"tool_name\": \"good_night\", \"arguments\": {\"room\": \"bedroom\"}}
```

### 8. Security Considerations

It switches lights only.

### Steps

```yaml
- call: self.relay.set
  device: ${room}
  arguments: {on: false}
- call: self.audio_speaker.set_volume
  device: kitchen
  arguments: {volume: 10}
- if: {screen: {text: Lights}}
  then:
    - wait: 1
- return: {room: '${room}'}
```
";

/// A routine without parameters.
pub fn routine_file(name: &str, steps: &str) -> String {
    format!(
        "# X\n\n## Tool: {name}\n\n### 1. Tool Purpose and Description\n\nDoes it.\n\n### 2. Invocation Name\n\n`{name}`\n\n\
         ### 3. Input Schema (Parameters)\n\nThis tool takes no parameters.\n\n### Steps\n\n```yaml\n{steps}\n```\n"
    )
}
