package @PACKAGE@

import android.content.ContentProvider
import android.content.ContentValues
import android.database.Cursor
import android.net.Uri
import android.os.Binder
import android.os.Bundle
import android.os.Process
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

@CLASSES@
/** A content provider with one tool: describes the tool and runs it. */
abstract class McpToolProvider(
    private val name: String,
    private val description: String,
    schema: String,
) : ContentProvider() {
    private val schema = JSONObject(schema)

    /** Runs the tool. The arguments match the schema. */
    protected abstract fun run(arguments: JSONObject): String

    override fun call(method: String, arg: String?, extras: Bundle?): Bundle = try {
        requireKnownCaller()
        when (method) {
            "get_tool_info" -> info()
            "execute_tool" -> Bundle().apply {
                putBoolean("success", true)
                putString("tool_result", execute(extras ?: throw ToolFailure("the call has no extras")))
            }
            else -> throw ToolFailure("Unknown method: $method")
        }
    } catch (failure: ToolFailure) {
        refused(failure.message)
    } catch (failure: Exception) {
        refused("the tool failed: $failure")
    }

    private fun info() = Bundle().apply {
        val required = schema.optJSONArray("required") ?: JSONArray()
        putBoolean("success", true)
        putString("tool_name", name)
        putString("tool_description", description)
        putString("tool_input_schema", (schema.optJSONObject("properties") ?: JSONObject()).toString())
        putStringArray("tool_input_required", Array(required.length()) { required.getString(it) })
    }

    private fun execute(extras: Bundle): String {
        val asked = extras.getString("tool_name") ?: throw ToolFailure("the call has no tool_name")
        if (asked != name) throw ToolFailure("this provider has the tool $name, not $asked")
        @Suppress("DEPRECATION")
        val given = extras.getSerializable("tool_arguments") as? Map<*, *>
            ?: throw ToolFailure("tool_arguments must be a map of strings")
        val arguments = JSONObject()
        for ((key, text) in given) {
            arguments.put(key.toString(), typed(key.toString(), text.toString()))
        }
        Arguments.check(schema, arguments, "tool_arguments")
        return run(arguments)
    }

    /** All values arrive as strings; the schema has their types. */
    private fun typed(key: String, text: String): Any {
        val type = schema.optJSONObject("properties")?.optJSONObject(key)?.opt("type")
        val value: Any? = try {
            when (type) {
                "integer" -> text.toLongOrNull() ?: text.toDoubleOrNull()
                "number" -> text.toDoubleOrNull()
                "boolean" -> text.toBooleanStrictOrNull()
                "array" -> JSONArray(text)
                "object" -> JSONObject(text)
                else -> text
            }
        } catch (problem: JSONException) {
            null
        }
        return value ?: throw ToolFailure("tool_arguments.$key must be of type $type")
    }

    /** Any app can call an exported provider: refuse all except the known callers. */
    private fun requireKnownCaller() {
        val uid = Binder.getCallingUid()
        val known = uid == SHELL || uid == Process.myUid() ||
            context?.packageManager?.getPackagesForUid(uid).orEmpty().any { it in CALLERS }
        if (!known) throw ToolFailure("this caller may not use the tools of this app")
    }

    private fun refused(message: String) = Bundle().apply {
        putBoolean("success", false)
        putString("error_message", message)
    }

    override fun onCreate(): Boolean = true
    override fun getType(uri: Uri): String? = "@TYPE@"
    override fun query(uri: Uri, projection: Array<out String>?, selection: String?, selectionArgs: Array<out String>?, sortOrder: String?): Cursor? = null
    override fun insert(uri: Uri, values: ContentValues?): Uri? = null
    override fun delete(uri: Uri, selection: String?, selectionArgs: Array<out String>?): Int = 0
    override fun update(uri: Uri, values: ContentValues?, selection: String?, selectionArgs: Array<out String>?): Int = 0

    private companion object {
        /** The user of adb, as which the gateway calls. */
        const val SHELL = 2000

        /** Apps that may also call. */
        val CALLERS = setOf<String>()
    }
}
