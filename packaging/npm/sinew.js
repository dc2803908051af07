#!/usr/bin/env node
// Starts the program of the package for this platform, and passes on its streams, signals and exit code.
"use strict";
const { spawn } = require("node:child_process");

const name = `@sinew/cli-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/sinew`);
} catch {
  const supported = Object.keys(require("../package.json").optionalDependencies).map((one) => one.replace("@sinew/cli-", ""));
  console.error(`error: there is no package ${name}; sinew supports ${supported.join(", ")}. If that is your platform, install without --no-optional.`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("exit", () => child.kill());
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + require("node:os").constants.signals[signal]));
