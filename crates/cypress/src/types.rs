//! Types of nodes, their public names and codes (http-api.md 6.1, 6.2).

use std::fmt;

use vocab::{Failure, object_type};

macro_rules! node_types {
    ($($variant:ident = $name:literal, $code:ident;)*) => {
        /// Type of a node.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum NodeType { $($variant),* }

        impl NodeType {
            /// Every type.
            pub const ALL: &'static [NodeType] = &[$(NodeType::$variant),*];
            /// The public name.
            pub const fn name(self) -> &'static str { match self { $(NodeType::$variant => $name),* } }
            /// The code inside ids.
            pub const fn code(self) -> u16 { match self { $(NodeType::$variant => object_type::$code),* } }
        }
    };
}
node_types! {
    MapNode = "map_node", MAP_NODE;
    ListNode = "list_node", LIST_NODE;
    StringNode = "string_node", STRING_NODE;
    Int64Node = "int64_node", INT64_NODE;
    Uint64Node = "uint64_node", UINT64_NODE;
    DoubleNode = "double_node", DOUBLE_NODE;
    BooleanNode = "boolean_node", BOOLEAN_NODE;
    Document = "document", DOCUMENT;
    File = "file", FILE;
    Table = "table", TABLE;
    Link = "link", LINK;
    SysNode = "sys_node", MAP_NODE;
    Orchid = "orchid", ORCHID;
    User = "user", USER;
    Group = "group", GROUP;
    Account = "account", ACCOUNT;
    UserMap = "user_map", MAP_NODE;
    GroupMap = "group_map", MAP_NODE;
    AccountMap = "account_map", MAP_NODE;
    SchedulerPoolTreeMap = "scheduler_pool_tree_map", MAP_NODE;
    ClusterNodeMap = "cluster_node_map", MAP_NODE;
    TransactionMap = "transaction_map", MAP_NODE;
    LockMap = "lock_map", MAP_NODE;
    EstimatedCreationTimeMap = "estimated_creation_time_map", MAP_NODE;
}

impl NodeType {
    /// Does it have children under keys?
    pub fn is_map(self) -> bool {
        use NodeType::*;
        matches!(
            self,
            MapNode
                | SysNode
                | Orchid
                | UserMap
                | GroupMap
                | AccountMap
                | SchedulerPoolTreeMap
                | ClusterNodeMap
                | TransactionMap
                | LockMap
                | EstimatedCreationTimeMap
        )
    }

    /// Does it hold one plain value?
    pub fn is_scalar(self) -> bool {
        use NodeType::*;
        matches!(self, StringNode | Int64Node | Uint64Node | DoubleNode | BooleanNode)
    }

    /// Is it an object that is known by its name alone?
    pub fn is_subject(self) -> bool {
        matches!(self, NodeType::User | NodeType::Group | NodeType::Account)
    }

    /// What a map of such holds, and nothing else.
    pub fn kind_of_children(self) -> Option<NodeType> {
        match self {
            NodeType::UserMap => Some(NodeType::User),
            NodeType::GroupMap => Some(NodeType::Group),
            NodeType::AccountMap => Some(NodeType::Account),
            _ => None,
        }
    }

    /// May anybody make and copy nodes of this type? The rest are objects and maps of the system,
    /// whose making has consequences outside of the tree.
    pub fn is_plain(self) -> bool {
        use NodeType::*;
        matches!(self, MapNode | ListNode | Document | File | Table | Link) || self.is_scalar()
    }

    /// What a recursive `get` shows of it from above: the content or `#` (http-api.md 6.4). A map
    /// can be made opaque by its attribute; these cannot be made transparent.
    pub fn is_opaque_by_nature(self) -> bool {
        use NodeType::*;
        !(matches!(self, MapNode | SysNode | ListNode) || self.is_scalar())
    }

    /// By public name; an unknown one is refused with the list of what exists.
    pub fn parse(name: &str) -> Result<NodeType, Failure> {
        NodeType::ALL.iter().copied().find(|t| t.name() == name).ok_or_else(|| {
            let known = NodeType::ALL.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
            let shown: String = name.chars().take(100).collect();
            Failure::new(format!("Unknown node type {shown:?}: expected one of {known}"))
        })
    }
}

impl fmt::Display for NodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
