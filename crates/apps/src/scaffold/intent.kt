package @PACKAGE@

import android.app.Activity
import android.content.Intent
import android.os.Bundle
import org.json.JSONArray
import org.json.JSONException
import org.json.JSONObject

/** Takes the calls of the tools that the manifest advertises, and answers each with a result. */
class ToolActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        // A tool may take longer than Android lets the screen wait.
        Thread {
            val (code, text) = answer()
            runOnUiThread {
                setResult(code, Intent().putExtra("result", text))
                finish()
            }
        }.start()
    }

    private fun answer(): Pair<Int, String> = try {
        // Android names the caller only where a result is asked for, so nobody comes unnamed.
        if (callingPackage !in CALLERS) throw ToolFailure("this caller may not use the tools of this app")
        if (intent.action != ACTION_TOOL_CALL) throw ToolFailure("the action must be $ACTION_TOOL_CALL")
        val name = intent.getStringExtra("tool_name") ?: throw ToolFailure("the call lacks tool_name")
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
        val schema = SCHEMAS[name] ?: throw ToolFailure("there is no tool $name; there are ${SCHEMAS.keys}")
        Arguments.check(schema, parameters, "parameters")
        return when (name) {
@BRANCHES@
            else -> throw ToolFailure("there is no tool $name")
        }
    }

@METHODS@
    companion object {
        private const val ACTION_TOOL_CALL = "@CALL@"

        /** Who may call: the companion of the gateway. A package's name is its own only while it is installed. */
        private val CALLERS = setOf("sinew.companion")

        private val SCHEMAS = mapOf(
@SCHEMAS@
        )
    }
}
