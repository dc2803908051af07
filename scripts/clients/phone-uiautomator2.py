"""uiautomator2, which brings a server of its own to a phone: as far as it gets on a phone without Java."""

import os
import sys

import adbutils
import uiautomator2

os.environ["ANDROID_ADB_SERVER_HOST"] = "127.0.0.1"
serial = os.environ["SINEW_PHONE"]
failed = 0


def check(what, run):
    global failed
    try:
        run()
        print(f"ok   uiautomator2: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL uiautomator2: {what}: {type(error).__name__}: {str(error)[:600]}")


adb = adbutils.device(serial)


def server():
    """It copies its jar and starts it; a phone without Java says so, and so does the program."""
    try:
        uiautomator2.Device(adb)
    except uiautomator2.exceptions.LaunchUiAutomationError as error:
        assert "runs no Java" in str(error), error
        assert "u2.jar" in adb.shell("ls /data/local/tmp")
        return
    raise AssertionError("a server ran where there is no Java")


check("copies its own server and says why it does not start", server)
# The rest of it needs adb alone.
uiautomator2.Device.start_uiautomator = lambda self: None
phone = uiautomator2.Device(adb)


def commands():
    output = phone.shell(["echo", "it's $HOME"])
    assert output.output.strip() == "it's $HOME" and output.exit_code == 0, output


def apps():
    phone.app_start("dev.sinew.notes")
    assert phone.app_current()["package"] == "dev.sinew.notes", phone.app_current()
    assert "dev.sinew.notes" in phone.app_list()
    assert phone.app_info("dev.sinew.notes")["versionName"], phone.app_info("dev.sinew.notes")


def files():
    phone.push(__file__, "/sdcard/Download/script.py")
    copy = os.path.join(os.environ["HOME"], "copy.py")
    phone.pull("/sdcard/Download/script.py", copy)
    with open(copy, "rb") as one, open(__file__, "rb") as other:
        assert one.read() == other.read()


check("runs commands with their exit code", commands)
check("starts, names and lists apps", apps)
check("moves files", files)
sys.exit(failed > 0)
