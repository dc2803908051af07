package @PACKAGE@

import android.app.Activity
import android.content.Intent
import android.os.Bundle
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

/** Handles calls of the tools that the manifest advertises, and returns a result for each. */
class ToolActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        // A tool may take longer than Android allows on the UI thread.
        Thread {
            val (code, text) = answer()
            runOnUiThread {
                setResult(code, Intent().putExtra("result", text))
                finish()
            }
        }.start()
    }

    private fun answer(): Pair<Int, String> = try {
        // Null unless the caller asked for a result, so an unknown caller is refused too.
        if (callingPackage !in CALLERS) throw ToolFailure("this caller may not use the tools of this app")
        if (intent.action != ACTION_TOOL_CALL) throw ToolFailure("the action must be $ACTION_TOOL_CALL")
        val name = intent.getStringExtra("tool_name") ?: throw ToolFailure("the call has no tool_name")
        val parameters = parse(intent.getStringExtra("parameters"))
        RESULT_OK to run(name, parameters)
    } catch (failure: ToolFailure) {
        RESULT_CANCELED to failure.message
    } catch (failure: Exception) {
        RESULT_CANCELED to "the tool failed: $failure"
    }

    private fun parse(text: String?): JSONObject = try {
        JSONObject(if (text.isNullOrBlank()) "{}" else text)
    } catch (problem: JSONException) {
        throw ToolFailure("parameters must be a JSON object: ${problem.message}")
    }

    private fun run(name: String, parameters: JSONObject): String {
        val schema = SCHEMAS[name] ?: throw ToolFailure("unknown tool $name; this app has ${SCHEMAS.keys}")
        Arguments.check(schema, parameters, "parameters")
        return when (name) {
@BRANCHES@
            else -> throw ToolFailure("unknown tool $name")
        }
    }

@METHODS@
    companion object {
        private const val ACTION_TOOL_CALL = "@CALL@"

        /** Packages that may call: the gateway's companion. While it is not installed, another app could take its name. */
        private val CALLERS = setOf("sinew.companion")

        private val SCHEMAS = mapOf(
@SCHEMAS@
        )
    }
}
