// agent-device, which brings an app of its own to a phone: as far as it gets without that app running.
import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const home = process.env.HOME;
const program = join(process.env.SINEW_CLIENTS, 'agent-device/node_modules/agent-device/bin/agent-device.mjs');
let failed = 0;

async function ask(...args) {
  const { stdout } = await run(process.execPath, [program, ...args, '--json'], { timeout: 60_000, cwd: home }).catch((error) => error);
  return JSON.parse(stdout);
}

async function check(what, step) {
  try {
    await step();
    console.log(`ok   agent-device: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL agent-device: ${what}: ${error.message.slice(0, 600)}`);
  }
}

function expect(holds, answer) {
  if (!holds) throw new Error(JSON.stringify(answer));
}

const android = ['--platform', 'android'];
await check('finds the phone and its apps', async () => {
  const found = await ask('devices', ...android);
  expect(found.data?.devices.some((device) => device.id === process.env.SINEW_PHONE), found);
  const apps = await ask('apps', ...android);
  expect(apps.data?.apps.some((app) => app.includes('dev.sinew.notes')), apps);
});
await check('opens an app', async () => {
  const opened = await ask('open', 'dev.sinew.notes', ...android);
  expect(opened.success, opened);
});
await check('takes a screenshot', async () => {
  const shot = await ask('screenshot', join(home, 'screen.png'));
  expect(shot.data?.width === 1080 && statSync(join(home, 'screen.png')).size > 10_000, shot);
});
await check('taps and goes back', async () => {
  for (const step of [['press', '500', '500'], ['back']]) {
    const done = await ask(...step);
    expect(done.success, done);
  }
});
await check('says that its own app does not run, which this phone cannot do', async () => {
  const refused = await ask('snapshot', '-i');
  expect(!refused.success && refused.error.message.includes('INSTRUMENTATION_FAILED'), refused);
});
await ask('close');
// It leaves a process behind that answers its next command.
process.kill(JSON.parse(readFileSync(join(home, '.agent-device/daemon.json'), 'utf8')).pid);
process.exit(failed > 0 ? 1 : 0);
