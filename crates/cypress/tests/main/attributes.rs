//! Attributes (http-api.md 6.3).

use crate::console::{Console, check};
use expect_test::expect;

#[test]
fn system_attributes_of_a_map() {
    check(
        r#"
        create map_node //tmp/a -- attributes={mine=1}
        get //tmp/a/@ -- attributes=[type;key;path;creation_time;owner;account;count;opaque;builtin;nothing;mine]
        get //tmp/a/@revision
        set //tmp/a/b 1
        get //tmp/a/@ -- attributes=[attribute_revision;content_revision;revision]
        set //tmp/a/@x 1
        get //tmp/a/@ -- attributes=[attribute_revision;content_revision;revision]
        get //tmp/a/@user_attribute_keys
        get //tmp/a/@user_attributes
        get //tmp/a/@resource_usage
        get //tmp/a/@resource_usage/disk_space
        get //@key
        get //tmp/a/@nothing
        "#,
        expect![[r#"
            create map_node //tmp/a -- attributes={mine=1}
                ok
            get //tmp/a/@ -- attributes=[type;key;path;creation_time;owner;account;count;opaque;builtin;nothing;mine]
                {"type"="map_node";"key"="a";"path"="//tmp/a";"creation_time"="2026-01-02T03:04:06.000000Z";"owner"="alice";"account"="tmp";"count"=0;"opaque"=%false;"builtin"=%false;"mine"=1;}
            get //tmp/a/@revision
                3u
            set //tmp/a/b 1
                ok
            get //tmp/a/@ -- attributes=[attribute_revision;content_revision;revision]
                {"attribute_revision"=3u;"content_revision"=4u;"revision"=4u;}
            set //tmp/a/@x 1
                ok
            get //tmp/a/@ -- attributes=[attribute_revision;content_revision;revision]
                {"attribute_revision"=5u;"content_revision"=4u;"revision"=5u;}
            get //tmp/a/@user_attribute_keys
                ["mine";"x";]
            get //tmp/a/@user_attributes
                {"mine"=1;"x"=1;}
            get //tmp/a/@resource_usage
                {"node_count"=1;"chunk_count"=0;"disk_space"=0;"disk_space_per_medium"={"default"=0;};"tablet_count"=0;"tablet_static_memory"=0;}
            get //tmp/a/@resource_usage/disk_space
                0
            get //@key
                500: Attribute "key" of / is not found
            get //tmp/a/@nothing
                500: Attribute "nothing" of //tmp/a is not found
        "#]],
    );
}

#[test]
fn types_have_their_own() {
    check(
        r#"
        create table //tmp/t -- attributes={schema=[{name=a;type=string}];optimize_for=scan}
        get //tmp/t/@ -- attributes=[row_count;chunk_count;data_weight;sorted;sorted_by;schema;schema_mode;dynamic;optimize_for;compression_codec;user_attribute_keys]
        create file //tmp/f
        get //tmp/f/@ -- attributes=[uncompressed_data_size;compressed_data_size;chunk_count;compression_codec;md5]
        get //sys/users/root/@ -- attributes=[name;member_of;member_of_closure;banned]
        get //sys/groups/users/@ -- attributes=[name;members;member_of]
        get //sys/accounts/tmp/@ -- attributes=[name;resource_limits]
        set //sys/users/root/@banned yes
        "#,
        expect![[r#"
            create table //tmp/t -- attributes={schema=[{name=a;type=string}];optimize_for=scan}
                ok
            get //tmp/t/@ -- attributes=[row_count;chunk_count;data_weight;sorted;sorted_by;schema;schema_mode;dynamic;optimize_for;compression_codec;user_attribute_keys]
                {"row_count"=0;"chunk_count"=0;"data_weight"=0;"sorted"=%false;"schema"=<"strict"=%true;"unique_keys"=%false;>[{"name"="a";"required"=%false;"type"="string";"type_v3"={"type_name"="optional";"item"="string";};};];"schema_mode"="strong";"dynamic"=%false;"optimize_for"="scan";"compression_codec"="none";"user_attribute_keys"=[];}
            create file //tmp/f
                ok
            get //tmp/f/@ -- attributes=[uncompressed_data_size;compressed_data_size;chunk_count;compression_codec;md5]
                {"uncompressed_data_size"=0;"compressed_data_size"=0;"chunk_count"=0;"compression_codec"="none";}
            get //sys/users/root/@ -- attributes=[name;member_of;member_of_closure;banned]
                {"name"="root";"member_of"=["users";];"member_of_closure"=["everyone";"users";];"banned"=%false;}
            get //sys/groups/users/@ -- attributes=[name;members;member_of]
                {"name"="users";"members"=["root";];"member_of"=[];}
            get //sys/accounts/tmp/@ -- attributes=[name;resource_limits]
                {"name"="tmp";"resource_limits"={"node_count"=500000;"disk_space_per_medium"={"default"=1099511627776;};"master_memory"={"total"=1073741824;};};}
            set //sys/users/root/@banned yes
                1: Attribute //sys/users/root/@banned: expected boolean, found string
        "#]],
    );
}

#[test]
fn all_attributes_hide_the_expensive() {
    let mut console = Console::new();
    console.say("create table //tmp/t");
    let all = console.run("get //tmp/t/@").expect("attributes");
    for hidden in ["resource_usage", "recursive_resource_usage", "effective_acl", "schema", "locks"] {
        assert!(all.contains(&format!("\"{hidden}\"=#;")), "{hidden} in {all}");
    }
    assert!(all.contains("\"type\"=\"table\";"));
    let names = console.run("list //tmp/t/@").expect("names");
    assert!(names.contains("\"row_count\""));
}

#[test]
fn setting() {
    check(
        r#"
        set //tmp/@x {a={b=1}}
        set //tmp/@x/a/c 2
        set //tmp/@x/q/c 2
        set //tmp/@y/c 2
        get //tmp/@x
        get //tmp/@x/a/c
        get //tmp/@x/a/d
        get //tmp/@x/a/c/d
        exists //tmp/@x/a/c
        exists //tmp/@x/a/d
        set //tmp/@l []
        set //tmp/@l/end 1
        set //tmp/@l/begin 0
        get //tmp/@l
        set //tmp/@id 5
        set //tmp/@count/x 5
        set //tmp/@owner bob
        set //tmp/@owner 5
        get //tmp/@owner
        set //tmp/@ {p=1;q=2}
        get //tmp/@user_attributes
        set //tmp/@ {p=3;id=2}
        get //tmp/@user_attributes
        multiset //tmp {p=5;owner=carl}
        multiset //tmp/@ {p=6;id=6}
        get //tmp/@ -- attributes=[p;owner]
        multiset //tmp/nope {p=6}
        set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[read;write]}
        get //tmp/@acl/-1/permissions
        set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[fly]}
        set //tmp/@acl/end {action=maybe;subjects=[bob];permissions=[read]}
        set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[read];color=red}
        set //tmp/@inherit_acl 1
        "#,
        expect![[r#"
            set //tmp/@x {a={b=1}}
                ok
            set //tmp/@x/a/c 2
                ok
            set //tmp/@x/q/c 2
                500: Node //tmp/@x has no child with key "q"
            set //tmp/@y/c 2
                500: Attribute "y" of //tmp is not found
            get //tmp/@x
                {"a"={"b"=1;"c"=2;};}
            get //tmp/@x/a/c
                2
            get //tmp/@x/a/d
                500: Node //tmp/@x/a has no child with key "d"
            get //tmp/@x/a/c/d
                500: //tmp/@x/a/c cannot have children: it is of type "int64"
            exists //tmp/@x/a/c
                true
            exists //tmp/@x/a/d
                false
            set //tmp/@l []
                ok
            set //tmp/@l/end 1
                ok
            set //tmp/@l/begin 0
                ok
            get //tmp/@l
                [0;1;]
            set //tmp/@id 5
                1: Attribute "id" of //tmp cannot be changed: it is a system attribute
            set //tmp/@count/x 5
                1: Attribute "count" of //tmp cannot be changed: it is a system attribute
            set //tmp/@owner bob
                ok
            set //tmp/@owner 5
                1: Attribute //tmp/@owner: expected string, found int64
            get //tmp/@owner
                "bob"
            set //tmp/@ {p=1;q=2}
                ok
            get //tmp/@user_attributes
                {"p"=1;"q"=2;}
            set //tmp/@ {p=3;id=2}
                1: Attribute "id" of //tmp cannot be changed: it is a system attribute
            get //tmp/@user_attributes
                {"p"=1;"q"=2;}
            multiset //tmp {p=5;owner=carl}
                ok
            multiset //tmp/@ {p=6;id=6}
                1: Attribute "id" of //tmp cannot be changed: it is a system attribute
            get //tmp/@ -- attributes=[p;owner]
                {"p"=5;"owner"="carl";}
            multiset //tmp/nope {p=6}
                500: Node //tmp has no child with key "nope"
            set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[read;write]}
                ok
            get //tmp/@acl/-1/permissions
                ["read";"write";]
            set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[fly]}
                1: Attribute //tmp/@acl cannot be set <- 1: Unknown permission "fly": expected one of read, write, use, administer, create, remove, mount, manage, modify_children, register_queue_consumer, full_read
            set //tmp/@acl/end {action=maybe;subjects=[bob];permissions=[read]}
                1: Attribute //tmp/@acl cannot be set <- 1: Unknown ACE action "maybe": expected one of allow, deny
            set //tmp/@acl/end {action=allow;subjects=[bob];permissions=[read];color=red}
                1: Attribute //tmp/@acl cannot be set <- 1: Unknown key "color" in ACE: expected one of action, subjects, permissions, inheritance_mode, columns
            set //tmp/@inherit_acl 1
                1: Attribute //tmp/@inherit_acl: expected boolean, found int64
        "#]],
    );
}
