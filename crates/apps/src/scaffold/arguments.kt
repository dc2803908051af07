
/** A failed call, with a message for the model that made it. */
class ToolFailure(override val message: String) : Exception(message)

/** Checks arguments against the part of JSON Schema that tools use. */
private object Arguments {
    fun check(schema: JSONObject, value: Any?, path: String) {
        val types = when (val type = schema.opt("type")) {
            is String -> listOf(type)
            is JSONArray -> type.items().map { it.toString() }
            else -> emptyList()
        }
        require(types.isEmpty() || types.any { fits(it, value) }, path, "must be of type ${types.joinToString(" or ")}")
        schema.optJSONArray("enum")?.let { allowed ->
            require(allowed.items().any { it == value }, path, "must be one of $allowed")
        }
        when (value) {
            is Number -> {
                val number = value.toDouble()
                require(number >= schema.optDouble("minimum", number), path, "must be at least ${schema.opt("minimum")}")
                require(number <= schema.optDouble("maximum", number), path, "must be at most ${schema.opt("maximum")}")
            }
            is String -> {
                require(value.length >= schema.optInt("minLength", 0), path, "is too short")
                require(value.length <= schema.optInt("maxLength", Int.MAX_VALUE), path, "is too long")
            }
            is JSONArray -> schema.optJSONObject("items")?.let { item ->
                value.items().forEachIndexed { index, one -> check(item, one, "$path[$index]") }
            }
            is JSONObject -> checkMembers(schema, value, path)
        }
    }

    private fun checkMembers(schema: JSONObject, value: JSONObject, path: String) {
        for (name in schema.optJSONArray("required")?.items().orEmpty()) {
            require(value.has(name.toString()), path, "has no $name")
        }
        val properties = schema.optJSONObject("properties") ?: JSONObject()
        for (name in value.keys()) {
            val property = properties.optJSONObject(name)
            if (property != null) {
                check(property, value.get(name), "$path.$name")
            } else {
                require(properties.has(name) || schema.opt("additionalProperties") != false, path, "must not have $name")
            }
        }
    }

    private fun fits(type: String, value: Any?): Boolean = when (type) {
        "string" -> value is String
        "integer" -> value is Int || value is Long || (value is Double && value % 1.0 == 0.0)
        "number" -> value is Number
        "boolean" -> value is Boolean
        "array" -> value is JSONArray
        "object" -> value is JSONObject
        "null" -> value == null || value == JSONObject.NULL
        else -> false
    }

    private fun require(kept: Boolean, path: String, what: String) {
        if (!kept) throw ToolFailure("$path $what")
    }

    private fun JSONArray.items(): List<Any> = (0 until length()).map { get(it) }
}
