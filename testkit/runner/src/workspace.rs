//! Where things are: the root, the target folder, the folder of tools, and the packages.

use std::env;
use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::{Error, Result};

/// The workspace that this command runs in, as its manifests describe it.
#[derive(Debug)]
pub struct Workspace {
    metadata: Metadata,
}

impl Workspace {
    /// Reads the manifests of the workspace, without resolving or downloading anything.
    ///
    /// The workspace is the one that holds the runner's own manifest when cargo started it, else the one that
    /// holds the current folder.
    ///
    /// # Errors
    /// If cargo cannot read the manifests, or the lock file does not fit them.
    pub fn load() -> Result<Self> {
        let mut command = MetadataCommand::new();
        if let Some(folder) = env::var_os("CARGO_MANIFEST_DIR") {
            command.current_dir(folder);
        }
        command.no_deps().other_options(["--locked", "--offline"].map(String::from));
        let metadata = command.exec().map_err(|e| Error::Workspace(format!("cargo metadata: {e}")))?;
        Ok(Self { metadata })
    }

    /// Returns the root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Returns the target folder, as `CARGO_TARGET_DIR` or the configuration says.
    #[must_use]
    pub fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// Returns the folder of installed tools: `CONSIGN_TOOLS_DIR` if that is set and not empty, else `testkit-tools`
    /// in the target folder. Always absolute.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        match env::var_os("CONSIGN_TOOLS_DIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => self.root().join(folder),
            None => self.target().join("testkit-tools"),
        }
    }

    /// Returns the packages of the workspace.
    #[must_use]
    pub fn packages(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }
}
