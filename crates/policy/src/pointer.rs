//! JSON pointers in the configuration.

/// What is wrong with a pointer to an argument, if anything; `key` is the setting it stands in.
pub(crate) fn check_pointer(key: &str, pointer: &str) -> Result<(), String> {
    if pointer.is_empty() {
        return Err(format!("`{key}` is missing; write for example `{key} = \"/celsius\"` for the argument `celsius`"));
    }
    if !pointer.starts_with('/') {
        return Err(format!(
            "`{key} = \"{pointer}\"` is not a JSON pointer; write `/{pointer}` for the argument `{pointer}`"
        ));
    }
    let mut rest = pointer.split('~').skip(1);
    if rest.any(|after| !after.starts_with(['0', '1'])) {
        return Err(format!("`{pointer}` is not a JSON pointer: write `~0` for `~` and `~1` for `/` within a name"));
    }
    Ok(())
}
