//! The file that a new routine starts from.

/// A routine without parameters, with its description to fill in and two steps as an example.
pub fn new_from_template(name: &str) -> String {
    TEMPLATE.replace("NAME", name)
}

const TEMPLATE: &str = "\
# Routine NAME

## Tool: NAME

**Version**: 1.0.0

### 1. Tool Purpose and Description

{{What it does, and when to use it.}}

### 2. Invocation Name

`NAME`

### 3. Input Schema (Parameters)

This tool takes no parameters.

### 4. Output Schema (Return Value)

| Field Name | Type | Description | Example Value |
|---|---|---|---|
| `status` | string | Whether all steps were done. | `success` |

**JSON Schema**:

```json
{
  \"type\": \"object\",
  \"properties\": {
    \"status\": {\"enum\": [\"success\", \"failure\"], \"description\": \"Whether all steps were done.\", \"examples\": [\"success\"]}
  },
  \"required\": [\"status\"]
}
```

### 5. Error Handling

- `DeviceAway`: a device of its steps is not connected.

A failure is an object; the steps before the one that it names were done.

```json
{\"status\": \"failure\", \"error_type\": \"DeviceAway\", \"error_message\": \"step 1: the device is away\"}
```

### 6. Idempotency

- **Idempotent**: {{Yes or No}}
- **Explanation**: {{Why calling it twice does, or does not do, the same as calling it once.}}

### 7. Usage Examples (for MCP context)

```json
{\"tool_name\": \"NAME\", \"arguments\": {}}
```

### 8. Security Considerations

{{What somebody could do with it who should not.}}

### Steps

```yaml
- call: self.get_device_status
  device: kitchen
  as: kitchen
- expect: {value: \"${kitchen.battery.level}\", above: 10}
- return: {status: success}
```
";
