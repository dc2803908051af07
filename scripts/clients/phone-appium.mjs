// Appium's UiAutomator2 driver, which brings two apps of its own to a phone: as far as it gets without their running.
import { mkdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { HOME, SINEW_CLIENTS, SINEW_PHONE, ANDROID_ADB_SERVER_PORT } = process.env;
// It wants a whole SDK and uses its adb alone.
const sdk = join(HOME, 'sdk');
mkdirSync(join(sdk, 'platform-tools'), { recursive: true });
symlinkSync(execFileSync('which', ['adb'], { encoding: 'utf8' }).trim(), join(sdk, 'platform-tools/adb'));
process.env.ANDROID_HOME = sdk;

const { AndroidUiautomator2Driver } = await import(pathToFileURL(join(SINEW_CLIENTS, 'appium/node_modules/appium-uiautomator2-driver/build/lib/index.js')).href);

let failed = 0;
async function check(what, step) {
  try {
    await step();
    console.log(`ok   Appium: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL Appium: ${what}: ${error.message.slice(0, 600)}`);
  }
}
function expect(holds, answer) {
  if (!holds) throw new Error(JSON.stringify(answer));
}
const port = await new Promise((done) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

const driver = new AndroidUiautomator2Driver({}, false);
const capabilities = {
  platformName: 'Android', 'appium:automationName': 'UiAutomator2', 'appium:udid': SINEW_PHONE,
  'appium:adbPort': Number(ANDROID_ADB_SERVER_PORT), 'appium:systemPort': port, 'appium:suppressKillServer': true,
  'appium:appPackage': 'dev.sinew.notes', 'appium:appActivity': '.NotesActivity', 'appium:noReset': true,
  'appium:skipDeviceInitialization': true, 'appium:skipLogcatCapture': true, 'appium:uiautomator2ServerLaunchTimeout': 3000,
  'appium:uiautomator2ServerInstallTimeout': 60_000, 'appium:adbExecTimeout': 60_000,
};
let adb;
await check('installs its own server and says that it does not start', async () => {
  const said = await driver.createSession(null, null, { alwaysMatch: capabilities, firstMatch: [{}] }).then((session) => session, (error) => error.message);
  adb = driver.adb;
  expect(String(said).includes('instrumentation process cannot be initialized'), said);
  expect(await adb.isAppInstalled('io.appium.uiautomator2.server'), 'its server was not installed');
});
await check('reads what the phone is', async () => {
  expect(await adb.getApiLevel() >= 28 && (await adb.getScreenSize()) === '1080x2400', await adb.getScreenSize());
  expect((await adb.getModel()).startsWith('Virtual'), await adb.getModel());
});
await check('starts an app and names it', async () => {
  await adb.startApp({ pkg: 'dev.sinew.notes', activity: '.NotesActivity', stopApp: false, waitDuration: 10_000 });
  const focus = await adb.getFocusedPackageAndActivity();
  expect(focus.appPackage === 'dev.sinew.notes', focus);
});
await check('removes its apps again', async () => {
  for (const app of ['io.appium.uiautomator2.server', 'io.appium.uiautomator2.server.test']) await adb.uninstallApk(app);
  expect(!(await adb.isAppInstalled('io.appium.uiautomator2.server')), 'it is still there');
});
process.exit(failed > 0 ? 1 : 0);
