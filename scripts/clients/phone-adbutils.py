"""adbutils, a program that knows nothing of Sinew, driving the virtual phone through adb."""

import io
import os
import re
import sys
import tempfile
import xml.etree.ElementTree

import adbutils

client = adbutils.AdbClient(host="127.0.0.1", port=int(os.environ["ANDROID_ADB_SERVER_PORT"]))
phone = client.device(os.environ["SINEW_PHONE"])
failed = 0


def check(what, run):
    global failed
    try:
        run()
        print(f"ok   adbutils: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL adbutils: {what}: {type(error).__name__}: {str(error)[:600]}")


def found():
    assert os.environ["SINEW_PHONE"] in [device.serial for device in client.device_list()]
    assert phone.get_state() == "device"
    assert phone.prop.model.startswith("Virtual"), phone.prop.model


def size():
    assert tuple(phone.window_size()) == (1080, 2400), phone.window_size()


def app():
    phone.app_start("com.android.settings")
    assert phone.app_current().package == "com.android.settings", phone.app_current()
    assert "dev.sinew.notes" in phone.list_packages()
    assert phone.app_info("dev.sinew.notes").package_name == "dev.sinew.notes"


def tree():
    assert "<hierarchy" in (dump := phone.dump_hierarchy()) and "com.android.settings" in dump, dump[:300]


def nodes():
    return list(xml.etree.ElementTree.fromstring(phone.dump_hierarchy()).iter("node"))


def middle(text):
    node = next(node for node in nodes() if node.get("text") == text)
    left, top, right, bottom = map(int, re.findall(r"-?\d+", node.get("bounds")))
    return (left + right) // 2, (top + bottom) // 2


def input_arrives():
    phone.keyevent("HOME")
    phone.app_start("com.android.calculator2")
    for key in ("7", "8"):
        phone.click(*middle(key))
    assert any(node.get("text") == "78" for node in nodes()), [node.get("text") for node in nodes()]
    phone.app_start("com.android.contacts")
    before = [node.get("text") for node in nodes()]
    phone.swipe(540, 1800, 540, 900, 0.3)
    assert [node.get("text") for node in nodes()] != before


def picture():
    image = phone.screenshot()
    assert image.size == (1080, 2400), image.size
    assert len(image.convert("L").getcolors(256)) > 5, "an empty picture"


def shell():
    result = phone.shell2("echo out; echo err >&2; false")
    assert (result.returncode, "out" in result.output) == (1, True), result
    assert "uid=2000(shell)" in phone.shell("id"), phone.shell("id")


def files():
    text = b"files go there and back\n" * 5000
    phone.sync.push(io.BytesIO(text), "/sdcard/there.txt")
    assert phone.sync.read_bytes("/sdcard/there.txt") == text
    assert phone.sync.stat("/sdcard/there.txt").size == len(text)
    with tempfile.TemporaryDirectory() as folder:
        phone.sync.pull("/sdcard/there.txt", f"{folder}/back.txt")
        assert open(f"{folder}/back.txt", "rb").read() == text


for what, run in [
    ("finds the phone", found),
    ("reads the size of the screen", size),
    ("starts an app and lists them", app),
    ("reads the tree", tree),
    ("taps, swipes and presses keys", input_arrives),
    ("takes a picture", picture),
    ("runs commands", shell),
    ("moves files", files),
]:
    check(what, run)
sys.exit(1 if failed else 0)
