//! The rules for apps: what `sinew app lint` checks, and what is checked in a running app.
//! `docs/app-rules.md` is printed from them.

use sinew_tool::finding::{Linter, Rule};

/// The linter behind `sinew app lint`.
pub static LINTER: Linter = Linter { name: "sinew app", page: "docs/app-rules.md", rules: RULES };

/// The rules for an app that did not answer a query correctly.
pub static QUERY_FAILED: [&Rule; 5] =
    [&PROVIDER_SILENT, &PROVIDER_ANSWER, &BROADCAST_SILENT, &BROADCAST_ANSWER, &FUNCTIONS_ANSWER];

/// The rule with this id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    LINTER.rule(id)
}

/// The reference page of all rules.
pub fn rules_page() -> String {
    let head = "# Rules for apps that offer tools\n\n\
         <!-- Printed from the code; a test checks that it is fresh. -->\n\n\
         What `sinew app lint` checks, and why. The last rules are checked only when an app is installed on a phone. \
         `sinew app explain RULE` prints one rule; how to write such an app is in \
         [app-authors.md](app-authors.md).\n\n";
    format!("{head}{}", LINTER.reference())
}

sinew_tool::rules! {
    /// Every rule: discovery first, then tools, then code, then the answers of a running app.
    pub static RULES = [
        FILTER {
            severity: Error, fixable: false,
            title: r#"Tools are declared with the filter that hosts look for"#,
            why: r#"A host finds tools by the intent filter alone: the advertising action of an activity, or the MIME type together with the action VIEW of a provider. With one wrong letter the tools are not found, and no error is shown."#,
            bad: r#"<provider android:name=".McpToolProvider" ...>
    <intent-filter>
        <data android:mimeType="application/vnd.mcp.tools" />"#,
            good: r#"<provider android:name=".McpToolProvider" ...>
    <intent-filter>
        <action android:name="android.intent.action.VIEW" />
        <data android:mimeType="application/vnd.mcp.tool" />"#,
        }
        CATEGORY {
            severity: Warning, fixable: false,
            title: r#"Filters of activities have the category DEFAULT"#,
            why: r#"Android adds the category to every intent that starts an activity. A filter without it matches none of them."#,
            bad: r#"<intent-filter>
    <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />"#,
            good: r#"<intent-filter>
    <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />
    <category android:name="android.intent.category.DEFAULT" />"#,
        }
        CALL_ACTION {
            severity: Warning, fixable: false,
            title: r#"A component that advertises tools also handles the calls"#,
            why: r#"Advertising and calling are two actions. Calls without the component's name do not reach a component that has only the first; since Android 13 (API 33) neither do calls with its name. A receiver that handles the discovery but not the call offers tools that nobody can use."#,
            bad: r#"<action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />"#,
            good: r#"<action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />
<action android:name="com.example.mMCP.ACTION_TOOL_CALL" />"#,
        }
        NOT_EXPORTED {
            severity: Error, fixable: false,
            title: r#"Components that offer tools are exported"#,
            why: r#"A component that is not exported is invisible to other apps: hosts get a permission error or no answer."#,
            bad: r#"<provider android:name=".McpToolProvider" android:authorities="...">"#,
            good: r#"<provider android:name=".McpToolProvider" android:authorities="..." android:exported="true">"#,
        }
        EXPORTED_UNSAID {
            severity: Warning, fixable: false,
            title: r#"android:exported is set explicitly"#,
            why: r#"Before Android 12 a filter exported a component automatically. Android does not install an app for API 31 or later without the attribute."#,
            bad: r#"<activity android:name=".ToolActivity">
    <intent-filter>"#,
            good: r#"<activity android:name=".ToolActivity" android:exported="true">
    <intent-filter>"#,
        }
        DISABLED {
            severity: Warning, fixable: false,
            title: r#"Components that offer tools are enabled"#,
            why: r#"A disabled component does not exist for other apps. Ignore this rule if the app enables it at run time."#,
            bad: r#"<service android:name=".Tools" android:enabled="false">"#,
            good: r#"<service android:name=".Tools">"#,
        }
        PERMISSION {
            severity: Warning, fixable: false,
            title: r#"Callers do not need a permission that hosts do not have"#,
            why: r#"A permission keeps out every app without it, including the host that should call the tool. Check the caller in code instead, where you can accept the callers you want."#,
            bad: r#"<provider ... android:permission="com.example.CALL_TOOLS">"#,
            good: r#"override fun call(...): Bundle {
    requireKnownCaller()"#,
        }
        AUTHORITY {
            severity: Warning, fixable: false,
            title: r#"A provider's authority starts with the app's package"#,
            why: r#"Authorities are unique on a phone: an app whose authority is already used cannot be installed. The package name is unique already."#,
            bad: r#"android:authorities="mcptool""#,
            good: r#"android:authorities="com.yourcompany.yourapp.mcptool""#,
        }
        AUTHORITY_MISSING {
            severity: Error, fixable: false,
            title: r#"A provider has an authority"#,
            why: r#"The authority is the address at which a provider is called."#,
            bad: r#"<provider android:name=".McpToolProvider" android:exported="true">"#,
            good: r#"<provider android:name=".McpToolProvider" android:authorities="com.yourcompany.yourapp.mcptool" android:exported="true">"#,
        }
        AUTHORITY_REPEATED {
            severity: Error, fixable: false,
            title: r#"Two providers do not share an authority"#,
            why: r#"Android gives an authority to one provider; the other one is never called. With one provider per tool, each needs its own authority."#,
            bad: r#"<provider android:name=".OneTool" android:authorities="com.example.app.tools" />
<provider android:name=".OtherTool" android:authorities="com.example.app.tools" />"#,
            good: r#"<provider android:name=".OneTool" android:authorities="com.example.app.tools.one" />
<provider android:name=".OtherTool" android:authorities="com.example.app.tools.other" />"#,
        }
        MANIFEST_MISSING {
            severity: Error, fixable: false,
            title: r#"An advertised tool is described in the meta-data"#,
            why: r#"Hosts read the tools from the meta-data `mMCP_manifest` of the advertising activity, or from the capability file of the service. Without them there are no tools."#,
            bad: r#"<meta-data android:name="mMCP_tools" android:value="..." />"#,
            good: r#"<meta-data android:name="mMCP_manifest" android:value="@string/tools" />"#,
        }
        MANIFEST_ELSEWHERE {
            severity: Advice, fixable: false,
            title: r#"Tools in resources are checked in the built APK"#,
            why: r#"A reference in the manifest says where the tools are, not what they are. Lint the APK as well."#,
            bad: r#"sinew app lint AndroidManifest.xml"#,
            good: r#"sinew app lint app-release.apk"#,
        }
        MANIFEST_SHAPE {
            severity: Error, fixable: false,
            title: r#"The meta-data is an object with `tools`"#,
            why: r#"`tools` is an array of objects with `name`, `description` and `parameters`."#,
            bad: r#"{"pdf_tool": {"parameters": {}}}"#,
            good: r#"{"instructions": "...", "tools": [{"name": "pdf_tool", "description": "...", "parameters": {"type": "object"}}]}"#,
        }
        MANIFEST_SIZE {
            severity: Error, fixable: false,
            title: r#"The meta-data is at most 1 MiB"#,
            why: r#"A model reads all tools of an app with every request."#,
            bad: r#"a megabyte of JSON"#,
            good: r#"a few kilobytes"#,
        }
        JSON_BROKEN {
            severity: Error, fixable: false,
            title: r#"The meta-data is valid JSON"#,
            why: r#"The JSON in the APK is parsed strictly. The message shows the position of the error."#,
            bad: r#"{"tools": [{"name": "a",}]}"#,
            good: r#"{"tools": [{"name": "a"}]}"#,
        }
        JSON_ESCAPES {
            severity: Warning, fixable: false,
            title: r#"Backslashes in an attribute are doubled"#,
            why: r#"The packager removes one level of backslashes from every attribute: `\n` becomes a line break and `\"` an unescaped quote, and neither is valid inside a JSON string. This gateway repairs what it can; other hosts ignore the app."#,
            bad: r#"android:value='{"tools": [{"name": "say", "description": "Say \"hi\"\nand wait"}]}'"#,
            good: r#"android:value='{"tools": [{"name": "say", "description": "Say \\\"hi\\\"\\nand wait"}]}'"#,
        }
        JSON_QUOTES {
            severity: Error, fixable: false,
            title: r#"Quotes in a string resource are escaped"#,
            why: r#"The packager removes unescaped quotes from string resources, and JSON without quotes is invalid."#,
            bad: r#"<string name="tools">{"tools": []}</string>"#,
            good: r#"<string name="tools">{\"tools\": []}</string>"#,
        }
        PROTOCOL_VERSION {
            severity: Error, fixable: false,
            title: r#"The protocol version is 1.x, or absent"#,
            why: r#"An absent version means 1.0. A host that does not know the version cannot call the tools."#,
            bad: r#"{"protocolVersion": "2.0", "tools": []}"#,
            good: r#"{"protocolVersion": "1.0", "tools": []}"#,
        }
        TOOL_SHAPE {
            severity: Error, fixable: false,
            title: r#"Every tool has a name"#,
            why: r#"A tool without a name cannot be called. The other tools are still offered."#,
            bad: r#"{"description": "Reads PDF files"}"#,
            good: r#"{"name": "pdf_tool", "description": "Reads PDF files"}"#,
        }
        TOO_MANY {
            severity: Warning, fixable: false,
            title: r#"An app offers at most 128 tools"#,
            why: r#"A model that has to choose among hundreds of tools chooses badly, and reads all of them with every request."#,
            bad: r#"a tool for every button"#,
            good: r#"a tool for everything a person would ask for"#,
        }
        UNFILLED {
            severity: Error, fixable: false,
            title: r#"Placeholders of a form are filled in"#,
            why: r#"Models read the text of a tool as it is. A name or description that still has `{{…}}` says nothing."#,
            bad: r#""description": "{{What the tool does}}""#,
            good: r#""description": "Gets the weather forecast of a place for up to seven days""#,
        }
        NAME_REPEATED {
            severity: Warning, fixable: false,
            title: r#"Tool names are unique in an app"#,
            why: r#"Of two tools with one name only the first is offered."#,
            bad: r#"{"tools": [{"name": "search"}, {"name": "search"}]}"#,
            good: r#"{"tools": [{"name": "search_mail"}, {"name": "search_contacts"}]}"#,
        }
        NAME_FORM {
            severity: Warning, fixable: false,
            title: r#"Tool names are made of letters, digits, `_`, `-` and `.`"#,
            why: r#"AI clients do not allow other characters, so a host must rename the tool."#,
            bad: r#""name": "read PDF""#,
            good: r#""name": "read_pdf""#,
        }
        NAME_VAGUE {
            severity: Warning, fixable: false,
            title: r#"Tool names say what the tool does"#,
            why: r#"The name is what a model sees first, among the tools of many apps."#,
            bad: r#""name": "my_tool_name""#,
            good: r#""name": "get_weather_forecast""#,
        }
        DESCRIPTION {
            severity: Warning, fixable: false,
            title: r#"Descriptions say when to use the tool"#,
            why: r#"A model chooses by the description: what the tool does, when to use it, what it returns."#,
            bad: r#""description": "Description of what my tool does""#,
            good: r#""description": "Gets the weather forecast of a place for up to seven days""#,
        }
        SCHEMA_NOT_OBJECT {
            severity: Error, fixable: false,
            title: r#"The parameters are a JSON Schema of an object"#,
            why: r#"Arguments are sent as an object with a member for each parameter. A tool with another schema is not offered."#,
            bad: r#""parameters": ["path"]"#,
            good: r#""parameters": {"type": "object", "properties": {"path": {"type": "string"}}}"#,
        }
        REQUIRED {
            severity: Error, fixable: false,
            title: r#"Required names are among the parameters"#,
            why: r#"A model cannot fill in a parameter that is not described."#,
            bad: r#"{"type": "object", "properties": {"days": {"type": "number"}}, "required": ["location"]}"#,
            good: r#"{"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}"#,
        }
        PARAMETER_TYPE {
            severity: Warning, fixable: false,
            title: r#"Every parameter has a type"#,
            why: r#"A value with a type can be checked before the app is called. Inputs that do not match the schema are a common reason for failed calls."#,
            bad: r#""days": {"description": "Number of days (1-7)"}"#,
            good: r#""days": {"type": "integer", "minimum": 1, "maximum": 7, "description": "Number of days"}"#,
        }
        PARAMETER_DESCRIPTION {
            severity: Advice, fixable: false,
            title: r#"Every parameter is described"#,
            why: r#"Only the author knows the format, unit and range of a parameter."#,
            bad: r#""location": {"type": "string"}"#,
            good: r#""location": {"type": "string", "description": "City name or coordinates"}"#,
        }
        INSTRUCTIONS {
            severity: Advice, fixable: false,
            title: r#"The app says what it is for"#,
            why: r#"Models read `instructions` before the tools: what the app is for, and what its tools have in common."#,
            bad: r#"{"tools": [...]}"#,
            good: r#"{"instructions": "This app provides PDF processing capabilities", "tools": [...]}"#,
        }
        CALLER_CHECK {
            severity: Warning, fixable: false,
            title: r#"The code checks its caller"#,
            why: r#"Any app on the phone can call an exported component, not only the host that the user chose. In an APK the code is searched for a method that identifies the caller; for a manifest this is a reminder."#,
            bad: r#"override fun call(method: String, arg: String?, extras: Bundle?): Bundle =
    execute(extras)"#,
            good: r#"override fun call(method: String, arg: String?, extras: Bundle?): Bundle {
    if (Binder.getCallingUid() !in allowed) return errorBundle("this caller is not allowed")
    return execute(extras)
}"#,
        }
        PROTOCOL_WORDS {
            severity: Error, fixable: false,
            title: r#"The code contains the strings of its protocol"#,
            why: r#"A provider handles `get_tool_info` and `execute_tool` and reads `tool_arguments`; an activity reads `tool_name` and `parameters` and returns `result`. Code without one of these strings cannot follow the protocol."#,
            bad: r#""run_tool" -> execute(extras)"#,
            good: r#""execute_tool" -> execute(extras)"#,
        }
        ERROR_MESSAGE {
            severity: Warning, fixable: false,
            title: r#"Failures have a message"#,
            why: r#"A model can correct a failed call if it knows the reason: return `success` false and an `error_message`."#,
            bad: r#"catch (e: Exception) { return Bundle() }"#,
            good: r#"catch (e: Exception) { return errorBundle("no forecast for $location: ${e.message}") }"#,
        }
        APK {
            severity: Error, fixable: false,
            title: "The APK can be read",
            why: "An APK that Android installs can still be damaged or built to mislead its reader. No tools of such an app are offered.",
            bad: "an archive whose directory points outside of it",
            good: "what the packager wrote",
        }
        ASKED {
            severity: Advice, fixable: false,
            title: "Some tools are known only when the app is installed",
            why: "Providers and receivers list their tools when they are queried, so the APK does not show them.",
            bad: "sinew app inspect app.apk",
            good: "sinew phones apps, with the app installed",
        }
        PACKAGE_DIFFERS {
            severity: Error, fixable: false,
            title: "The APK has the package name that the phone reports",
            why: "The package name decides whose tools they are. If phone and APK disagree, no tools are offered.",
            bad: "the phone lists com.example.bank, the APK says com.example.game",
            good: "both say com.example.bank",
        }
        NOT_CALLABLE {
            severity: Error, fixable: false,
            title: "Every offered tool can be called",
            why: "Some protocols answer in a way that neither the agent nor the companion can receive. Such tools are shown as unusable instead of failing with every call.",
            bad: "a service that answers through a PendingIntent",
            good: "an activity, a provider or a receiver",
        }
        PROVIDER_SILENT {
            severity: Error, fixable: false,
            title: "A provider answers a query for its tools",
            why: "Without an answer, a host does not know the tools.",
            bad: "get_tool_info throws, or takes a minute",
            good: "get_tool_info returns a bundle at once",
        }
        PROVIDER_ANSWER {
            severity: Error, fixable: false,
            title: "A provider's answer describes tools",
            why: "The answer must be a bundle with the members of the protocol.",
            bad: "a bundle without tool_name",
            good: "tool_name, tool_description and tool_input_schema",
        }
        REQUIRED_UNREADABLE {
            severity: Warning, fixable: false,
            title: "The required arguments of a tool can be read",
            why: "Before Android 11 the shell prints arrays as an address; only the agent can read them.",
            bad: "the phone has Android 10 and no agent",
            good: "the agent runs on the phone",
        }
        SCHEMA_WHOLE {
            severity: Warning, fixable: false,
            title: "tool_input_schema has the properties alone",
            why: "The protocol expects the properties of the schema, without the schema around them. This gateway reads both.",
            bad: r#"{"type": "object", "properties": {"location": {"type": "string"}}}"#,
            good: r#"{"location": {"type": "string"}}"#,
        }
        BROADCAST_SILENT {
            severity: Error, fixable: false,
            title: "A receiver answers a query for its tools",
            why: "Without an answer, a host does not know the tools.",
            bad: "onReceive returns without a result",
            good: "setResult(RESULT_OK, null, extras)",
        }
        BROADCAST_ANSWER {
            severity: Error, fixable: false,
            title: "A receiver's answer describes tools",
            why: "The extras of the answer name the tools and describe each. Some Android versions print only the size of the extras; there the agent is needed.",
            bad: "an answer without the extra tools",
            good: "tools, and for each its description and parameters",
        }
        FUNCTIONS_ANSWER {
            severity: Error, fixable: false,
            title: "App functions can be listed",
            why: "Android lists them since version 16. If its answer cannot be read, none are offered.",
            bad: "cmd app_function prints something other than JSON",
            good: "cmd app_function list-app-functions prints a JSON object",
        }
        FUNCTION_TYPE {
            severity: Warning, fixable: false,
            title: "Types of an app function are not circular",
            why: "A type that contains itself cannot be written as a schema of arguments.",
            bad: "a Folder with a list of Folders",
            good: "a Folder with a list of names",
        }
    ];
}
