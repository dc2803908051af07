// The console in headless Chromium, for the checks of its pages.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gateway } from "./checks.mjs";

const require = createRequire(`${process.env.SINEW_BROWSER}/package.json`);
const { chromium } = require("playwright-core");

export const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const console_ = `${gateway.url}/console/`;
export const board = "board-ddee02";
export const pictures = process.env.CONSOLE_PICTURES;
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-dev-shm-usage"] });

/** A browser window whose errors are collected. */
export async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: gateway.url });
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const page = await context.newPage();
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  return { context, page, errors };
}

/** A window that is signed in with the gateway's own token. */
export async function openSignedIn(options) {
  const window = await open(options);
  await window.page.goto(run("console", "--print"));
  await window.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  return window;
}

/** Runs the program on the gateway's machine. */
export const run = (...args) => execFileSync(gateway.sinew, args, { env: gateway.env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

export const records = (device, ...tools) => JSON.parse(run("audit", "--device", device, "--output", "json")).records.filter((one) => tools.includes(one.tool));

/** A call by a client of its own. Gives the program's exit code. */
export function callAsClient(...args) {
  const called = spawn(gateway.sinew, ["call", ...args], { env: { ...gateway.env, SINEW_URL: gateway.url, SINEW_TOKEN: gateway.token }, stdio: "ignore" });
  return new Promise((done) => called.on("exit", done));
}

/** The first call that waits. */
export async function waitingCall() {
  for (let tries = 0; tries < 100; tries += 1) {
    const [first] = JSON.parse(run("approvals", "--output", "json")).approvals;
    if (first) return first;
  }
  throw new Error("no call waits");
}
