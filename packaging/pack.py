#!/usr/bin/env python3
"""Packages that are zip files or documents: a Python wheel, an MCP bundle, a list of components, a registry entry.

    pack.py wheel    PROGRAM OUT --version V --platform linux-x64 --server NAME [--glibc 2.36]
    pack.py mcpb     PROGRAM OUT --version V --platform linux-x64
    pack.py sbom     OUT --version V --target x86_64-unknown-linux-gnu
    pack.py registry OUT --version V --server NAME --downloads URL [--mcpb FILE]...
    pack.py check    FILE
    pack.py proofs   OUT --server NAME

The same input gives the same bytes: files carry the time of SOURCE_DATE_EPOCH.
"""
import argparse
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile

SUMMARY = "One MCP endpoint for boards, phones and apps"
LICENSE = "MIT OR Apache-2.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of each platform: its processor in the tag of a wheel, and what an MCP bundle calls its system.
PLATFORMS = {"linux-x64": ("x86_64", "linux"), "linux-arm64": ("aarch64", "linux")}


def moment():
    # A zip file knows no time before 1980.
    return time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "946684800")), 315532800))[:6]


def add(archive, name, content, executable=False):
    entry = zipfile.ZipInfo(name, moment())
    entry.create_system = 3  # Unix, so that the permissions count
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=int(os.environ.get("PACKAGE_ZIP_LEVEL", "6")))


def text(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def wheel(args):
    """`uvx sinew`: the program under `scripts`, where installers put what a person runs."""
    cpu, _ = PLATFORMS[args.platform]
    # A program that needs no C library runs beside every one.
    tag = f"manylinux_{args.glibc.replace('.', '_')}_{cpu}" if args.glibc else f"manylinux2014_{cpu}.musllinux_1_2_{cpu}"
    info, data = f"sinew-{args.version}.dist-info", f"sinew-{args.version}.data"
    metadata = (
        f"Metadata-Version: 2.4\nName: sinew\nVersion: {args.version}\nSummary: {SUMMARY}\n"
        f"License-Expression: {LICENSE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n"
        "Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n"
        f"<!-- mcp-name: {args.server} -->\n\n"
    ).encode() + (ROOT / "README.md").read_bytes()
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag.split("."))
    files = [
        (f"{data}/scripts/sinew", pathlib.Path(args.program).read_bytes(), True),
        (f"{info}/METADATA", metadata, False),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: sinew\nRoot-Is-Purelib: false\n{tags}".encode(), False),
        (f"{info}/licenses/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes(), False),
        (f"{info}/licenses/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes(), False),
    ]
    record = ""
    for name, content, _ in files:
        sum_ = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={sum_},{len(content)}\n"
    path = pathlib.Path(args.out) / f"sinew-{args.version}-py3-none-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, executable in files:
            add(archive, name, content, executable)
        add(archive, f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())
    return path


def bundle_manifest(version, platform):
    """What Claude Desktop asks for when the bundle is installed, and how it starts the program."""
    return {
        "manifest_version": "0.3",
        "name": "sinew",
        "display_name": "Sinew",
        "version": version,
        "description": SUMMARY,
        "long_description": "Sinew finds microcontroller boards, Android phones, the apps on them, MCP servers and "
        "gadgets, and offers their tools to this client. Without an address below it starts a gateway of its own, "
        "or joins the one that runs on this computer.",
        "author": {"name": "The Sinew developers"},
        "license": LICENSE,
        "server": {
            "type": "binary",
            "entry_point": "server/start",
            "mcp_config": {
                "command": "${__dirname}/server/start",
                "args": [],
                "env": {"SINEW_URL": "${user_config.url}", "SINEW_TOKEN": "${user_config.token}"},
            },
        },
        "tools_generated": True,
        "compatibility": {"platforms": [PLATFORMS[platform][1]]},
        "user_config": {
            "url": {
                "type": "string",
                "title": "Address of the gateway",
                "description": "Leave empty for a gateway on this computer.",
                "required": False,
                "default": "",
            },
            "token": {
                "type": "string",
                "title": "Token",
                "description": "Only for a gateway elsewhere: `sinew token new --client NAME` prints one there.",
                "sensitive": True,
                "required": False,
                "default": "",
            },
        },
    }


def mcpb(args):
    path = pathlib.Path(args.out) / f"sinew-{args.version}-{args.platform}.mcpb"
    with zipfile.ZipFile(path, "w") as archive:
        add(archive, "manifest.json", text(bundle_manifest(args.version, args.platform)))
        add(archive, "server/start", (ROOT / "packaging/mcpb/start").read_bytes(), True)
        add(archive, "server/sinew", pathlib.Path(args.program).read_bytes(), True)
        for name in ("LICENSE-APACHE", "LICENSE-MIT"):
            add(archive, name, (ROOT / name).read_bytes())
    return path


def sbom(args):
    """The crates inside the program, as CycloneDX: what `cargo tree` resolves for this target."""
    command = ["cargo", "tree", "--locked", "-p", "sinew", "--edges", "normal", "--prefix", "none", "--no-dedupe"]
    command += ["--target", args.target, "--format", "{p}|{l}"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    sums = dict()
    for name, version, checksum in re.findall(
        r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "registry[^"]*"\nchecksum = "([0-9a-f]{64})"',
        (ROOT / "Cargo.lock").read_text(),
    ):
        sums[name, version] = checksum
    components = {}
    for line in lines:
        package, _, licence = line.partition("|")
        name, version = package.split()[:2]
        version = version.removeprefix("v")
        if (name, version) not in sums:
            continue  # a crate of the workspace: part of the program itself
        purl = f"pkg:cargo/{name}@{version}"
        components[purl] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": sums[name, version]}],
            "licenses": [{"expression": licence.replace("/", " OR ")}],
        }
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", (*moment(), 0, 0, 0)),
            "component": {"type": "application", "name": "sinew", "version": args.version},
        },
        "components": [components[purl] for purl in sorted(components)],
    }
    path = pathlib.Path(args.out) / f"sinew-{args.version}-{args.target}.cdx.json"
    path.write_bytes(text(document))
    return path


def registry(args):
    """The entry of the MCP registry. Its name and the bundles' addresses are known when a release is published."""
    packages = [
        {
            "registryType": kind,
            "identifier": "sinew",
            "version": args.version,
            "runtimeHint": hint,
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "value": "stdio"}],
        }
        for kind, hint in (("npm", "npx"), ("pypi", "uvx"))
    ]
    packages += [
        {
            "registryType": "mcpb",
            "identifier": f"{args.downloads}/{pathlib.Path(bundle).name}",
            "version": args.version,
            "fileSha256": digest(pathlib.Path(bundle).read_bytes()),
            "transport": {"type": "stdio"},
        }
        for bundle in args.mcpb
    ]
    path = pathlib.Path(args.out) / "server.json"
    path.write_bytes(
        text(
            {
                "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
                "name": args.server,
                "title": "Sinew",
                "description": SUMMARY,
                "version": args.version,
                "packages": packages,
            }
        )
    )
    return path


def expect(condition, message):
    if not condition:
        sys.exit(f"error: {message}")


def check_wheel(path):
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        [record] = [name for name in names if name.endswith(".dist-info/RECORD")]
        rows = [row.rsplit(",", 2) for row in archive.read(record).decode().splitlines()]
        expect(sorted(row[0] for row in rows) == sorted(names), "RECORD does not list every file")
        for name, sum_, size in rows:
            content = archive.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            expect(name == record or (sum_ == f"sha256={wanted}" and int(size) == len(content)), f"{name}: wrong sum")


def check_bundle(path):
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        for key in ("manifest_version", "name", "version", "description", "author", "server"):
            expect(key in manifest, f"manifest.json has no `{key}`")
        expect(manifest["author"].get("name"), "the author has no name")
        server = manifest["server"]
        expect(server["type"] == "binary", "the server is not a program")
        for name in (server["entry_point"], "server/sinew"):
            expect(archive.getinfo(name).external_attr >> 16 & 0o111, f"{name} is not executable")
        command = server["mcp_config"]["command"]
        expect(command == "${__dirname}/" + server["entry_point"], "the command is not the program of the bundle")
        used = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(server)))
        asked = set(manifest["user_config"])
        expect(used == asked, f"settings that are asked for and used differ: {sorted(used ^ asked)}")
        for name, setting in manifest["user_config"].items():
            expect({"type", "title", "description"} <= set(setting), f"setting `{name}` is not described")


def check_registry(document):
    expect(re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", document["name"]), "`name` is not NAMESPACE/NAME")
    expect(1 <= len(document["description"]) <= 100, "`description` has more than 100 characters")
    expect(document["packages"], "there is no package")
    for package in document["packages"]:
        kind = package["registryType"]
        expect(kind in ("npm", "pypi", "nuget", "oci", "mcpb"), f"`{kind}` is not a kind of package")
        expect(package["version"] == document["version"], "a package has another version")
        expect(package["transport"]["type"] in ("stdio", "streamable-http", "sse"), "a package has no transport")
        if kind == "mcpb":
            expect(re.fullmatch("[0-9a-f]{64}", package["fileSha256"]), "a bundle has no SHA-256 sum")
            expect("mcp" in package["identifier"], "the address of a bundle must contain `mcp`")


def check_components(document):
    names = {component["name"] for component in document["components"]}
    expect(len(names) > 50, "the list of components is not complete")
    expect({"tokio", "rmcp", "rustls", "rusqlite"} <= names, "a crate that the program needs is not listed")
    for component in document["components"]:
        expect(component["licenses"][0]["expression"], f"{component['name']} has no licence")


def check(args):
    path = pathlib.Path(args.file)
    if path.suffix == ".whl":
        check_wheel(path)
    elif path.suffix == ".mcpb":
        check_bundle(path)
    elif path.name == "server.json":
        check_registry(json.loads(path.read_text()))
    else:
        check_components(json.loads(path.read_text()))
    return path


def proofs(args):
    """The registry believes a package whose own metadata names its entry."""
    out = pathlib.Path(args.out)
    # The packages of platforms carry the program alone.
    [package] = [path for path in out.glob("sinew-*.tgz") if not path.name.startswith("sinew-cli-")]
    with tarfile.open(package) as archive:
        manifest = json.load(archive.extractfile("package/package.json"))
    expect(manifest["mcpName"] == args.server, f"{package.name} does not name {args.server}")
    programs = {path.name.removesuffix(f"-{manifest['version']}.tgz") for path in out.glob("sinew-cli-*.tgz")}
    asked = {name.replace("@sinew/", "sinew-") for name in manifest["optionalDependencies"]}
    expect(asked == programs, f"{package.name} asks for {sorted(asked)}, and there are {sorted(programs)}")
    for path in out.glob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
            expect(f"<!-- mcp-name: {args.server} -->" in archive.read(metadata).decode(), f"{path.name} has no mcp-name")
    for path in out.glob("*.tar.xz"):
        with tarfile.open(path) as archive:
            [dockerfile] = [name for name in archive.getnames() if name.endswith("/Dockerfile")]
            label = f'LABEL io.modelcontextprotocol.server.name="{args.server}"'
            expect(label in archive.extractfile(dockerfile).read().decode(), f"the Dockerfile in {path.name} has no label")
    server = json.loads((out / "server.json").read_text())
    expect(server["name"] == args.server, "server.json has another name")
    bundles = {package["identifier"].rsplit("/", 1)[1] for package in server["packages"] if package["registryType"] == "mcpb"}
    expect(bundles == {path.name for path in out.glob("*.mcpb")}, "server.json does not list every bundle")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    for function, words in (
        (wheel, ("program", "out", "--version", "--platform", "--server", "--glibc")),
        (mcpb, ("program", "out", "--version", "--platform")),
        (sbom, ("out", "--version", "--target")),
        (registry, ("out", "--version", "--server", "--downloads", "--mcpb")),
        (check, ("file",)),
        (proofs, ("out", "--server")),
    ):
        kind = kinds.add_parser(function.__name__)
        kind.set_defaults(function=function)
        for word in words:
            if word == "--platform":
                kind.add_argument(word, required=True, choices=PLATFORMS)
            elif word == "--mcpb":
                kind.add_argument(word, action="append", default=[])
            else:
                kind.add_argument(word, **({"required": word != "--glibc"} if word.startswith("--") else {}))
    args = parser.parse_args()
    print(args.function(args))


main()
