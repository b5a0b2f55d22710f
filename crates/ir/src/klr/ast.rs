//! A file as a kernel: its tensors, and one list of blocks of statements per core.

use std::fmt;

use super::error::KlrError;
use super::ops::Operator;
use super::read::{self, Dialect};
use super::schema;
use super::tensor::TensorName;
use super::value::Value;
use super::view::{FromValue, field, node_of, payload, record};

record! {
    /// Where in the kernel's source a statement comes from.
    Pos from Pos {
        /// Line.
        line: u64 = "line",
        /// Column.
        column: u64 = "column",
        /// Last line.
        line_end: Option<u64> = "lineEnd",
        /// Last column.
        column_end: Option<u64> = "columnEnd",
        /// Source file.
        filename: Option<String> = "filename",
    }
}

impl fmt::Display for Pos {
    /// `file:line:column`, the column as stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.filename.as_deref().unwrap_or("<kernel>"), self.line, self.column)
    }
}

/// One statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Operator.
    pub op: Operator,
    /// Name given by the compiler or the author.
    pub name: Option<String>,
    /// Source position.
    pub pos: Pos,
    /// Byte offset in the file.
    pub offset: usize,
}

impl FromValue for Stmt {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let (node, offset) = (node_of(value, &schema::Stmt)?, value.offset);
        let (op, name, pos) =
            (field(node, offset, "op")?, field(node, offset, "name")?, field(node, offset, "pos")?);
        Ok(Self { op, name, pos, offset })
    }
}

/// Statements without branches between them.
#[derive(Debug, Clone)]
pub struct Block {
    /// Label.
    pub label: String,
    /// Whether the order of the statements must be kept; false when the dialect lacks the field.
    pub no_reorder: bool,
    /// Statements in order.
    pub body: Vec<Stmt>,
}

impl FromValue for Block {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let (node, offset) = (node_of(value, &schema::Block)?, value.offset);
        Ok(Self {
            label: field(node, offset, "label")?,
            no_reorder: field(node, offset, "noReorder")?,
            body: field(node, offset, "body")?,
        })
    }
}

record! {
    /// A constant that comes with the kernel as a file.
    SharedConstant from SharedConstantFile {
        /// Tensor name.
        name: String = "name",
        /// File name.
        file_name: String = "fileName",
    }
}

record! {
    /// Where control goes after a block.
    Edges from Edges {
        /// Label of the block.
        from: String = "fromEdge",
        /// Labels of its successors.
        to: Vec<String> = "toEdges",
    }
}

/// A kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// Argument tensors, in device memory.
    pub inputs: Vec<TensorName>,
    /// Result tensors, in device memory.
    pub outputs: Vec<TensorName>,
    /// Blocks of each core; one core in contents 2.
    pub cores: Vec<Vec<Block>>,
    /// Constants, none in contents 2.
    pub shared_constants: Vec<SharedConstant>,
    /// Buffers that the cores share, none in contents 2.
    pub shared_buffers: Vec<TensorName>,
    /// Control flow, none in contents 2.
    pub edges: Vec<Edges>,
}

impl FromValue for Kernel {
    fn from_value(value: &Value) -> Result<Self, KlrError> {
        let offset = value.offset;
        if let Ok(node) = node_of(value, &schema::Kernel) {
            return Ok(Self {
                name: field(node, offset, "name")?,
                inputs: field(node, offset, "inputs")?,
                outputs: field(node, offset, "outputs")?,
                cores: vec![field(node, offset, "body")?],
                shared_constants: Vec::new(),
                shared_buffers: Vec::new(),
                edges: Vec::new(),
            });
        }
        let node = node_of(value, &schema::LncKernel)?;
        Ok(Self {
            name: field(node, offset, "name")?,
            inputs: field(node, offset, "inputs")?,
            outputs: field(node, offset, "outputs")?,
            cores: field(node, offset, "bodies")?,
            shared_constants: field(node, offset, "sharedConstants")?,
            shared_buffers: field(node, offset, "sharedBuffers")?,
            edges: field(node, offset, "edges")?,
        })
    }
}

/// A file.
#[derive(Debug, Clone)]
pub struct File {
    /// Version numbers of the header: major, minor, patch. They are the same in all known dialects.
    pub version: [u64; 3],
    /// Format name of the metadata.
    pub metadata: String,
    /// Dialect.
    pub dialect: Dialect,
    /// The contents as read.
    pub contents: Value,
    /// The kernel in them.
    pub kernel: Kernel,
}

impl File {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The first thing that no accepted dialect has, with its byte offset.
    pub fn parse(bytes: &[u8]) -> Result<Self, KlrError> {
        let raw = read::read(bytes)?;
        let node = node_of(&raw.contents, &schema::Contents)?;
        let kernel = payload(node, raw.contents.offset)?;
        Ok(Self {
            version: raw.version,
            metadata: raw.metadata,
            dialect: raw.dialect,
            contents: raw.contents,
            kernel,
        })
    }

    /// The contents as JSON, see [`super::json::to_json`].
    pub fn to_json(&self) -> serde_json::Value {
        super::json::to_json(&self.contents)
    }
}
