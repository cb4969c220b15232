"""Pack the extension: `python editors/vscode/pack.py [OUT.vsix]`; the same bytes each time.

A .vsix is a zip with a manifest. The version is that of stepper. Nothing is fetched, and nothing but Python is needed.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

FOLDER: Final = Path(__file__).parent
TYPES: Final = {
    "json": "application/json",
    "js": "application/javascript",
    "md": "text/markdown",
    "png": "image/png",
    "vsixmanifest": "text/xml",
    "txt": "text/plain",
}
_WHEN: Final = (2026, 1, 1, 0, 0, 0)


def version() -> str:
    """Return the version of stepper, as its package says it."""
    text = (FOLDER.parents[1] / "stepper" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+)', text, re.MULTILINE)
    if found is None:
        raise SystemExit("stepper/__init__.py has no __version__")
    return found[1]


def files() -> dict[str, bytes]:
    """Return the files of the extension, by their names in it."""
    manifest = json.loads((FOLDER / "package.json").read_bytes())
    named = (path for pattern in manifest["files"] for path in sorted(FOLDER.glob(pattern)))
    names = ["package.json", *(path.relative_to(FOLDER).as_posix() for path in named)]
    found = {name: (FOLDER / name).read_bytes() for name in names}
    found["README.md"] = re.sub(rb"\]\((media/[^)]*[.]png)\)", _embedded, found["README.md"])
    manifest["version"] = version()
    found["package.json"] = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    return found


def _embedded(match: re.Match[bytes]) -> bytes:
    """Return a picture as data: VS Code shows no picture of a README by a relative path."""
    content = base64.b64encode((FOLDER / match[1].decode()).read_bytes())
    return b"](data:image/png;base64," + content + b")"


def manifest_of(package: dict[str, Any]) -> str:
    """Return what VS Code reads of a package before it unpacks it."""
    categories = ",".join(package["categories"])
    languages = [text for one in package["contributes"]["languages"] for text in (one["id"], *one["aliases"])]
    tags = ",".join([*package["keywords"], "debuggers", *(text.replace(" ", "") for text in languages), "xml"])
    named = (("Id", "name"), ("Version", "version"), ("Publisher", "publisher"))
    identity = " ".join(f"{attribute}={quoteattr(package[key])}" for attribute, key in named)
    repository = quoteattr(package["repository"]["url"])
    color, theme = package["galleryBanner"]["color"], package["galleryBanner"]["theme"]
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" {identity}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Tags>{escape(tags)}</Tags>
    <Categories>{escape(categories)}</Categories>
    <GalleryFlags>Public</GalleryFlags>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(package["engines"]["vscode"])}/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionDependencies" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionPack" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
      <Property Id="Microsoft.VisualStudio.Code.LocalizedLanguages" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.EnabledApiProposals" Value=""/>
      <Property Id="Microsoft.VisualStudio.Code.ExecutesCode" Value="true"/>
      <Property Id="Microsoft.VisualStudio.Services.GitHubFlavoredMarkdown" Value="true"/>
      <Property Id="Microsoft.VisualStudio.Services.Content.Pricing" Value="Free"/>
      <Property Id="Microsoft.VisualStudio.Services.Links.Learn" Value={quoteattr(package["homepage"])}/>
      <Property Id="Microsoft.VisualStudio.Services.Links.Support" Value={quoteattr(package["bugs"]["url"])}/>
      <Property Id="Microsoft.VisualStudio.Services.Links.Source" Value={repository}/>
      <Property Id="Microsoft.VisualStudio.Services.Links.Getstarted" Value={repository}/>
      <Property Id="Microsoft.VisualStudio.Services.Links.Repository" Value={repository}/>
      <Property Id="Microsoft.VisualStudio.Services.Branding.Color" Value={quoteattr(color)}/>
      <Property Id="Microsoft.VisualStudio.Services.Branding.Theme" Value={quoteattr(theme)}/>
    </Properties>
    <License>extension/LICENSE.txt</License>
    <Icon>extension/media/icon.png</Icon>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Changelog" Path="extension/CHANGELOG.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Icons.Default" Path="extension/media/icon.png" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def content_types() -> str:
    """Return the types of the files by their suffixes."""
    usual = "".join(f'<Default Extension=".{suffix}" ContentType="{type}"/>' for suffix, type in TYPES.items())
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{usual}</Types>\n'
    )


def lay_out(folder: Path) -> Path:
    """Write the files of the extension into a folder, from which other packers can pack it."""
    for name, content in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def pack(target: Path) -> Path:
    """Write the package."""
    found = files()
    found["LICENSE.txt"] = found.pop("LICENSE")
    package = json.loads(found["package.json"])
    parts = {
        "extension.vsixmanifest": manifest_of(package).encode(),
        "[Content_Types].xml": content_types().encode(),
        **{f"extension/{name}": content for name, content in found.items()},
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, _WHEN)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return target


if __name__ == "__main__":
    print(pack(Path(sys.argv[1] if len(sys.argv) > 1 else f"stepper-{version()}.vsix")))
