// What every JavaScript client must be able to do with a running gateway, written once.
// A client gives three functions: version(), list() -> tools, call(name, args) -> result or a thrown protocol error;
// and its revision, where it is neither the newest nor told by version().
import assert from "node:assert/strict";

let failed = 0;

export async function check(label, what, run) {
  try {
    await run();
    console.log(`ok   ${label}: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${label}: ${what}: ${error.message.split("\n").slice(0, 12).join(" | ")}`);
  }
}

export async function checks(label, client, expectedVersion) {
  let tools = [];
  let board;
  const named = (end) => {
    const tool = tools.find((tool) => tool.name.endsWith(end));
    assert.ok(tool, `no tool ends with ${end}: ${tools.map((tool) => tool.name)}`);
    return tool.name;
  };
  await check(label, `speaks ${expectedVersion ?? "an agreed version"}`, async () => {
    if (expectedVersion) assert.equal(await client.version(), expectedVersion);
  });
  await check(label, "lists the folded tools", async () => {
    tools = await client.list();
    for (const end of ["list_devices", "get_device_events", "set_volume", "get_device_status", "take_photo"]) named(end);
    const names = tools.map((tool) => tool.name);
    assert.equal(new Set(names).size, names.length, "names are unique");
  });
  await check(label, "finds the boards", async () => {
    const result = await client.call("list_devices", {});
    // Revisions before 2025-06-18 have it as text alone.
    const devices = (result.structuredContent ?? JSON.parse(result.content[0].text)).devices;
    assert.ok(devices.length >= 3, JSON.stringify(devices));
    board = devices.find((device) => JSON.stringify(device).includes("ompanion")).id;
  });
  await check(label, "a set volume shows in the status", async () => {
    const volume = 10 + Math.floor(Math.random() * 80);
    const set = await client.call(named("set_volume"), { device: board, volume });
    assert.ok(!set.isError, JSON.stringify(set));
    const status = await client.call(named("get_device_status"), { device: board });
    const text = status.content.find((item) => item.type === "text").text;
    assert.equal(JSON.parse(text).audio_speaker.volume, volume, text);
  });
  await check(label, "a photo is a picture", async () => {
    const result = await client.call(named("take_photo"), { device: board, question: "What do you see?" });
    const image = result.content.find((item) => item.type === "image");
    assert.ok(image, JSON.stringify(result).slice(0, 300));
    const bytes = Buffer.from(image.data, "base64");
    const magic = image.mimeType === "image/png" ? "89504e47" : "ffd8ff";
    assert.ok(bytes.toString("hex").startsWith(magic), `${image.mimeType} starts with ${bytes.toString("hex", 0, 4)}`);
  });
  await check(label, "sound and links come in the types of its revision", async () => {
    const revision = client.revision ?? expectedVersion ?? "2025-11-25";
    const { content, structuredContent } = await client.call(named("every_type"), {});
    const sound = content.find((item) => item.type === "audio");
    const blob = content.find((item) => item.resource?.blob)?.resource;
    const link = content.find((item) => item.type === "resource_link");
    const text = content.find((item) => item.type === "text" && item.text.includes("https://example.org/manual"));
    assert.equal((revision >= "2025-03-26" ? sound : blob)?.mimeType, "audio/wav", JSON.stringify(content));
    assert.equal(revision >= "2025-06-18" ? link?.name : text?.text.includes("Manual") && !link && "Manual", "Manual", JSON.stringify(content));
    assert.equal(Boolean(structuredContent), revision >= "2025-06-18", JSON.stringify(structuredContent));
    const said = content.some((item) => item.text === '{"length":12}');
    assert.equal(said, revision < "2025-06-18", JSON.stringify(content));
    assert.ok(JSON.stringify(link ?? text).includes("How to use it"), JSON.stringify(content));
    assert.equal(content.find((item) => item.resource?.text)?.resource.text, "A note");
  });
  await check(label, "an unknown tool is a protocol error -32602", async () => {
    const error = await client.call("no_such_tool", {}).then((result) => assert.fail(JSON.stringify(result)), (error) => error);
    assert.equal(error.code, -32602, String(error));
  });
  await check(label, "a wrong argument is a result with isError that names it", async () => {
    const result = await client.call(named("set_volume"), { device: board, volume: "loud" });
    assert.equal(result.isError, true, JSON.stringify(result));
    assert.match(result.content[0].text, /volume/);
    assert.equal(result._meta["sinew/error"].error_type, "ValidationError");
  });
}

export function finish() {
  process.exit(failed ? 1 : 0);
}

// What a client starts finds the gateway by its state directory alone.
const { SINEW_URL, SINEW_TOKEN, ...env } = process.env;

/** How to reach the gateway under test; scripts/clients/run sets these. */
export const gateway = {
  url: SINEW_URL,
  token: SINEW_TOKEN,
  env,
  sinew: process.env.SINEW_BIN,
  state: process.env.SINEW_STATE,
  clients: process.env.SINEW_CLIENTS,
};
