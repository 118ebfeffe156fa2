//! The commands of http-api.md 8.1, one story each.

use crate::console::{Console, check, check_on};
use cypress::Limits;
use expect_test::expect;

#[test]
fn set_and_get() {
    check(
        r#"
        set //tmp/a 5
        set //tmp/b {x=1;y=[a;{z=%true}];d=2.5;u=7u}
        get //tmp
        get //tmp/b/y/1/z
        get //tmp/b/y/-2
        get //tmp/b/@type
        get //tmp/b/y/@type
        set //tmp/c/d/e 1
        set //tmp/c/d/e 1 -- recursive=%true
        get //tmp/c
        set //tmp/a <note=hi>6
        get //tmp/a/@note
        get //tmp/zz
        get //tmp/a/b
        get //tmp/b/y/7
        set //tmp/e #
        "#,
        expect![[r#"
            set //tmp/a 5
                ok
            set //tmp/b {x=1;y=[a;{z=%true}];d=2.5;u=7u}
                ok
            get //tmp
                {"a"=5;"b"={"d"=2.5;"u"=7u;"x"=1;"y"=["a";{"z"=%true;};];};}
            get //tmp/b/y/1/z
                %true
            get //tmp/b/y/-2
                "a"
            get //tmp/b/@type
                "map_node"
            get //tmp/b/y/@type
                "list_node"
            set //tmp/c/d/e 1
                500: Node //tmp has no child with key "c"
            set //tmp/c/d/e 1 -- recursive=%true
                ok
            get //tmp/c
                {"d"={"e"=1;};}
            set //tmp/a <note=hi>6
                ok
            get //tmp/a/@note
                "hi"
            get //tmp/zz
                500: Node //tmp has no child with key "zz"
            get //tmp/a/b
                500: //tmp/a cannot have children: it is of type "int64_node"
            get //tmp/b/y/7
                500: Node //tmp/b/y has no child with index 7: it has 2 items
            set //tmp/e #
                1: A node cannot hold an entity: //tmp/e needs a document for that
        "#]],
    );
}

#[test]
fn set_keeps_types() {
    check(
        r#"
        set //tmp/i 1
        set //tmp/i 2u
        set //tmp/i 18446744073709551615u
        set //tmp/i 2.0
        set //tmp/i x
        get //tmp/i
        set //tmp/u 1u
        set //tmp/u 5
        set //tmp/u -5
        get //tmp/u
        set //tmp/d 1.5
        set //tmp/d 3
        get //tmp/d
        set //tmp/l [1;2]
        set //tmp/l [3]
        set //tmp/l 3
        get //tmp/l
        set //tmp/m {a=1}
        set //tmp/m {b=1}
        set //tmp/m 1 -- force=%true
        set //tmp/m {b=1} -- force=%true
        get //tmp/m
        create table //tmp/t
        set //tmp/t 1
        "#,
        expect![[r#"
            set //tmp/i 1
                ok
            set //tmp/i 2u
                ok
            set //tmp/i 18446744073709551615u
                1: Value of //tmp/i: expected int64, found uint64
            set //tmp/i 2.0
                1: Value of //tmp/i: expected int64, found double
            set //tmp/i x
                1: Value of //tmp/i: expected int64, found string
            get //tmp/i
                2
            set //tmp/u 1u
                ok
            set //tmp/u 5
                ok
            set //tmp/u -5
                1: Value of //tmp/u: expected uint64, found int64
            get //tmp/u
                5u
            set //tmp/d 1.5
                ok
            set //tmp/d 3
                ok
            get //tmp/d
                3.
            set //tmp/l [1;2]
                ok
            set //tmp/l [3]
                ok
            set //tmp/l 3
                1: //tmp/l: expected list, found int64
            get //tmp/l
                [3;]
            set //tmp/m {a=1}
                ok
            set //tmp/m {b=1}
                1: Map node //tmp/m cannot be set as a whole: its children would be lost; give "force" to replace them
            set //tmp/m 1 -- force=%true
                1: //tmp/m: expected map, found int64
            set //tmp/m {b=1} -- force=%true
                ok
            get //tmp/m
                {"b"=1;}
            create table //tmp/t
                ok
            set //tmp/t 1
                1: Command "set" is not supported for //tmp/t of type "table"
        "#]],
    );
}

#[test]
fn lists_have_insertion_points() {
    check(
        r#"
        set //tmp/l [b]
        set //tmp/l/end d
        set //tmp/l/begin a
        set //tmp/l/before:-1 c
        set //tmp/l/after:3 {e=1}
        get //tmp/l
        get //tmp/l/4/@path
        set //tmp/l/9 x
        set //tmp/l/before:9 x
        remove //tmp/l/0
        remove //tmp/l/-1 -- recursive=%true
        get //tmp/l
        get //tmp/l/0/@path
        list //tmp/l
        remove //tmp/l/*
        get //tmp/l
        set //tmp/end 1
        get //tmp/end
        "#,
        expect![[r#"
            set //tmp/l [b]
                ok
            set //tmp/l/end d
                ok
            set //tmp/l/begin a
                ok
            set //tmp/l/before:-1 c
                ok
            set //tmp/l/after:3 {e=1}
                ok
            get //tmp/l
                ["a";"b";"c";"d";{"e"=1;};]
            get //tmp/l/4/@path
                "//tmp/l/4"
            set //tmp/l/9 x
                500: Node //tmp/l has no child with index 9: it has 5 items
            set //tmp/l/before:9 x
                500: Node //tmp/l has no child with index 9: it has 5 items
            remove //tmp/l/0
                ok
            remove //tmp/l/-1 -- recursive=%true
                ok
            get //tmp/l
                ["b";"c";"d";]
            get //tmp/l/0/@path
                "//tmp/l/0"
            list //tmp/l
                1: Command "list" is not supported for //tmp/l of type "list_node"
            remove //tmp/l/*
                ok
            get //tmp/l
                []
            set //tmp/end 1
                ok
            get //tmp/end
                1
        "#]],
    );
}

#[test]
fn documents_are_one_node() {
    check(
        r#"
        create document //tmp/d -- attributes={value={a={b=1};l=[1;2]}}
        get //tmp/d
        get //tmp
        get //tmp -- attributes=[value;opaque]
        get //tmp/d/a/b
        set //tmp/d/a/c 2
        set //tmp/d/x/y 2
        set //tmp/d/x/y 2 -- recursive=%true
        set //tmp/d/l/end 3
        set //tmp/d/a/b/c 3
        get //tmp/d
        list //tmp/d
        list //tmp/d/a
        list //tmp/d/l
        exists //tmp/d/a/c
        exists //tmp/d/a/q
        remove //tmp/d/a/c
        remove //tmp/d/a/c
        remove //tmp/d/a/c -- force=%true
        remove //tmp/d/l/0
        get //tmp/d/@value
        set //tmp/d 5
        get //tmp/d
        set //tmp/d/@value [x]
        get //tmp/d/0
        "#,
        expect![[r#"
            create document //tmp/d -- attributes={value={a={b=1};l=[1;2]}}
                ok
            get //tmp/d
                {"a"={"b"=1;};"l"=[1;2;];}
            get //tmp
                {"d"=#;}
            get //tmp -- attributes=[value;opaque]
                <"opaque"=%false;>{"d"=<"value"={"a"={"b"=1;};"l"=[1;2;];};"opaque"=%true;>#;}
            get //tmp/d/a/b
                1
            set //tmp/d/a/c 2
                ok
            set //tmp/d/x/y 2
                500: Node //tmp/d has no child with key "x"
            set //tmp/d/x/y 2 -- recursive=%true
                ok
            set //tmp/d/l/end 3
                ok
            set //tmp/d/a/b/c 3
                500: //tmp/d/a/b cannot have children: it is of type "int64"
            get //tmp/d
                {"a"={"b"=1;"c"=2;};"l"=[1;2;3;];"x"={"y"=2;};}
            list //tmp/d
                ["a";"l";"x";]
            list //tmp/d/a
                ["b";"c";]
            list //tmp/d/l
                1: Command "list" is not supported for //tmp/d/l of type "list"
            exists //tmp/d/a/c
                true
            exists //tmp/d/a/q
                false
            remove //tmp/d/a/c
                ok
            remove //tmp/d/a/c
                500: Node //tmp/d/a has no child with key "c"
            remove //tmp/d/a/c -- force=%true
                ok
            remove //tmp/d/l/0
                ok
            get //tmp/d/@value
                {"a"={"b"=1;};"l"=[2;3;];"x"={"y"=2;};}
            set //tmp/d 5
                ok
            get //tmp/d
                5
            set //tmp/d/@value [x]
                ok
            get //tmp/d/0
                "x"
        "#]],
    );
}

#[test]
fn list_shows_names() {
    check(
        r#"
        set //tmp/b {x=1;y=2;w=3}
        list //tmp/b
        list //tmp/b -- max_size=2
        list //tmp/b -- max_size=3
        list //tmp/b -- attributes=[type;nothing]
        list //sys/groups
        list //tmp/b/x
        list //tmp/zz
        list //tmp/b/@acl
        set //tmp/b/@m {q=1;p=2}
        list //tmp/b/@m
        list //tmp/b/@
        "#,
        expect![[r#"
            set //tmp/b {x=1;y=2;w=3}
                ok
            list //tmp/b
                ["w";"x";"y";]
            list //tmp/b -- max_size=2
                <"incomplete"=%true;>["w";"x";]
            list //tmp/b -- max_size=3
                ["w";"x";"y";]
            list //tmp/b -- attributes=[type;nothing]
                [<"type"="int64_node";>"w";<"type"="int64_node";>"x";<"type"="int64_node";>"y";]
            list //sys/groups
                ["admins";"everyone";"superusers";"users";]
            list //tmp/b/x
                1: Command "list" is not supported for //tmp/b/x of type "int64_node"
            list //tmp/zz
                500: Node //tmp has no child with key "zz"
            list //tmp/b/@acl
                1: Command "list" is not supported for //tmp/b/@acl of type "list"
            set //tmp/b/@m {q=1;p=2}
                ok
            list //tmp/b/@m
                ["p";"q";]
            list //tmp/b/@
                ["access_time";"account";"acl";"attribute_revision";"builtin";"content_revision";"count";"creation_time";"effective_acl";"id";"inherit_acl";"key";"lock_count";"lock_mode";"locks";"m";"modification_time";"opaque";"owner";"parent_id";"path";"recursive_resource_usage";"ref_counter";"resource_usage";"revision";"type";"user_attribute_keys";"user_attributes";]
        "#]],
    );
}

#[test]
fn get_is_bounded_and_stops_at_the_opaque() {
    check(
        r#"
        set //tmp/m {a={b={c=1}};d=2;e=3}
        get //tmp/m -- max_size=1
        set //tmp/m/a/@opaque %true
        get //tmp/m
        get //tmp/m/a
        get //tmp/m -- attributes=[opaque]
        link //tmp/m/d //tmp/l
        create table //tmp/t
        create file //tmp/f
        get //tmp -- attributes=[type]
        get //sys/scheduler
        "#,
        expect![[r#"
            set //tmp/m {a={b={c=1}};d=2;e=3}
                ok
            get //tmp/m -- max_size=1
                <"incomplete"=%true;>{"a"={"b"={"c"=1;};};}
            set //tmp/m/a/@opaque %true
                ok
            get //tmp/m
                {"a"=#;"d"=2;"e"=3;}
            get //tmp/m/a
                {"b"={"c"=1;};}
            get //tmp/m -- attributes=[opaque]
                <"opaque"=%false;>{"a"=<"opaque"=%true;>#;"d"=<"opaque"=%false;>2;"e"=<"opaque"=%false;>3;}
            link //tmp/m/d //tmp/l
                ok
            create table //tmp/t
                ok
            create file //tmp/f
                ok
            get //tmp -- attributes=[type]
                <"type"="map_node";>{"f"=<"type"="file";>#;"l"=<"type"="link";>#;"m"=<"type"="map_node";>{"a"=<"type"="map_node";>#;"d"=<"type"="int64_node";>2;"e"=<"type"="int64_node";>3;};"t"=<"type"="table";>#;}
            get //sys/scheduler
                {"config"=#;"instances"={};"lock"={};"orchid"=#;"user_to_default_pool"=#;}
        "#]],
    );
}

#[test]
fn create() {
    check(
        r#"
        create map_node //tmp/a
        create map_node //tmp/a
        create map_node //tmp/a -- ignore_existing=%true
        create table //tmp/a -- ignore_existing=%true
        create table //tmp/a -- ignore_existing=%true;ignore_type_mismatch=%true
        create table //tmp/a -- ignore_existing=%true;force=%true
        set //tmp/a/x 1
        create map_node //tmp/a -- force=%true
        get //tmp/a
        create map_node //tmp/b/c/d
        create map_node //tmp/b/c/d -- recursive=%true;attributes={opaque=%true;k=v}
        get //tmp/b -- attributes=[opaque;k]
        get //tmp/b/c/d/@k
        create map_node //tmp/b/x -- attributes={k=v;id=x}
        exists //tmp/b/x
        create string_node //tmp/s -- attributes={value=hello}
        get //tmp/s
        create int64_node //tmp/n -- attributes={value=hello}
        create double_node //tmp/n
        get //tmp/n
        create nonsense //tmp/x
        create link //tmp/x
        create map_node //tmp/s/x
        create map_node / -- force=%true
        create map_node //sys -- force=%true
        "#,
        expect![[r#"
            create map_node //tmp/a
                ok
            create map_node //tmp/a
                501: Node //tmp/a already exists
            create map_node //tmp/a -- ignore_existing=%true
                ok
            create table //tmp/a -- ignore_existing=%true
                501: Node //tmp/a already exists
            create table //tmp/a -- ignore_existing=%true;ignore_type_mismatch=%true
                ok
            create table //tmp/a -- ignore_existing=%true;force=%true
                1: "ignore_existing" and "force" cannot be given together
            set //tmp/a/x 1
                ok
            create map_node //tmp/a -- force=%true
                ok
            get //tmp/a
                {}
            create map_node //tmp/b/c/d
                500: Node //tmp has no child with key "b"
            create map_node //tmp/b/c/d -- recursive=%true;attributes={opaque=%true;k=v}
                ok
            get //tmp/b -- attributes=[opaque;k]
                <"opaque"=%false;>{"c"=<"opaque"=%false;>{"d"=<"opaque"=%true;"k"="v";>#;};}
            get //tmp/b/c/d/@k
                "v"
            create map_node //tmp/b/x -- attributes={k=v;id=x}
                1: Attribute "id" of //tmp/b/x cannot be changed: it is a system attribute
            exists //tmp/b/x
                false
            create string_node //tmp/s -- attributes={value=hello}
                ok
            get //tmp/s
                "hello"
            create int64_node //tmp/n -- attributes={value=hello}
                1: Value of //tmp/n: expected int64, found string
            create double_node //tmp/n
                ok
            get //tmp/n
                0.
            create nonsense //tmp/x
                1: Unknown node type "nonsense": expected one of map_node, list_node, string_node, int64_node, uint64_node, double_node, boolean_node, document, file, table, link, sys_node, orchid, user, group, account, user_map, group_map, account_map, scheduler_pool_tree_map, cluster_node_map, transaction_map, lock_map, estimated_creation_time_map
            create link //tmp/x
                1: A link needs the attribute "target_path"
            create map_node //tmp/s/x
                500: //tmp/s cannot have children: it is of type "string_node"
            create map_node / -- force=%true
                1: Node / cannot be removed: it is part of the system
            create map_node //sys -- force=%true
                1: Node //sys cannot be removed: it is part of the system
        "#]],
    );
}

#[test]
fn remove() {
    check(
        r#"
        set //tmp/a {b={c=1};d=2}
        remove //tmp/a
        remove //tmp/a/d
        remove //tmp/a/d
        remove //tmp/a/d -- force=%true
        remove //tmp/a/q/r -- force=%true
        remove //tmp/a/*
        get //tmp/a
        set //tmp/a/b {c=1}
        remove //tmp/a -- recursive=%true
        exists //tmp/a
        remove //sys/users -- recursive=%true
        remove / -- recursive=%true
        set //tmp/@x {y=1;z=2}
        remove //tmp/@x/y
        remove //tmp/@x/y
        get //tmp/@x
        remove //tmp/@x
        remove //tmp/@x
        remove //tmp/@x -- force=%true
        remove //tmp/@id
        set //tmp/@p 1
        set //tmp/@q 1
        remove //tmp/@*
        get //tmp/@user_attributes
        "#,
        expect![[r#"
            set //tmp/a {b={c=1};d=2}
                ok
            remove //tmp/a
                1: Node //tmp/a is not empty: it has 2 children; give "recursive"
            remove //tmp/a/d
                ok
            remove //tmp/a/d
                500: Node //tmp/a has no child with key "d"
            remove //tmp/a/d -- force=%true
                ok
            remove //tmp/a/q/r -- force=%true
                ok
            remove //tmp/a/*
                ok
            get //tmp/a
                {}
            set //tmp/a/b {c=1}
                ok
            remove //tmp/a -- recursive=%true
                ok
            exists //tmp/a
                false
            remove //sys/users -- recursive=%true
                1: Node //sys/users cannot be removed: it is part of the system
            remove / -- recursive=%true
                1: Node / cannot be removed: it is part of the system
            set //tmp/@x {y=1;z=2}
                ok
            remove //tmp/@x/y
                ok
            remove //tmp/@x/y
                500: Node //tmp/@x has no child with key "y"
            get //tmp/@x
                {"z"=2;}
            remove //tmp/@x
                ok
            remove //tmp/@x
                500: Attribute "x" of //tmp is not found
            remove //tmp/@x -- force=%true
                ok
            remove //tmp/@id
                1: Attribute "id" of //tmp cannot be changed: it is a system attribute
            set //tmp/@p 1
                ok
            set //tmp/@q 1
                ok
            remove //tmp/@*
                ok
            get //tmp/@user_attributes
                {}
        "#]],
    );
}

#[test]
fn copy_and_move() {
    check(
        r#"
        set //tmp/a <k=v>{b={c=1};l=[1;{q=2}]}
        copy //tmp/a //tmp/z
        get //tmp/z -- attributes=[k]
        copy //tmp/a //tmp/z
        copy //tmp/a //tmp/z -- ignore_existing=%true
        copy //tmp/a/b //tmp/z -- force=%true
        get //tmp/z
        copy //tmp/a //tmp/x/y
        copy //tmp/a //tmp/x/y -- recursive=%true
        move //tmp/x //home/x
        exists //tmp/x
        get //home
        copy //tmp/a //tmp/a/b/inner
        move //tmp/a //tmp/a/b -- force=%true
        move //tmp/a/b //tmp/a -- force=%true
        move //tmp/a //tmp/a -- force=%true
        copy //tmp/zz //tmp/q
        copy //sys/users/root //tmp/q
        copy //sys/scheduler //tmp/q
        move //sys/client_config/default //tmp/q
        copy //sys/client_config/default //tmp/q
        get //tmp/q/@builtin
        set //tmp/a/@acl [{action=allow;subjects=[bob];permissions=[read]}]
        copy //tmp/a //tmp/p1
        copy //tmp/a //tmp/p2 -- preserve_acl=%true
        get //tmp/p1/@acl
        get //tmp/p2/@acl
        "#,
        expect![[r#"
            set //tmp/a <k=v>{b={c=1};l=[1;{q=2}]}
                ok
            copy //tmp/a //tmp/z
                ok
            get //tmp/z -- attributes=[k]
                <"k"="v";>{"b"={"c"=1;};"l"=[1;{"q"=2;};];}
            copy //tmp/a //tmp/z
                501: Node //tmp/z already exists
            copy //tmp/a //tmp/z -- ignore_existing=%true
                ok
            copy //tmp/a/b //tmp/z -- force=%true
                ok
            get //tmp/z
                {"c"=1;}
            copy //tmp/a //tmp/x/y
                500: Node //tmp has no child with key "x"
            copy //tmp/a //tmp/x/y -- recursive=%true
                ok
            move //tmp/x //home/x
                ok
            exists //tmp/x
                false
            get //home
                {"x"={"y"={"b"={"c"=1;};"l"=[1;{"q"=2;};];};};}
            copy //tmp/a //tmp/a/b/inner
                1: Cannot copy //tmp/a to //tmp/a/b/inner: one contains the other
            move //tmp/a //tmp/a/b -- force=%true
                1: Cannot move //tmp/a to //tmp/a/b: one contains the other
            move //tmp/a/b //tmp/a -- force=%true
                1: Cannot move //tmp/a/b to //tmp/a: one contains the other
            move //tmp/a //tmp/a -- force=%true
                1: Cannot move //tmp/a to //tmp/a: one contains the other
            copy //tmp/zz //tmp/q
                500: Node //tmp has no child with key "zz"
            copy //sys/users/root //tmp/q
                1: Command "copy" is not supported for //sys/users/root of type "user"
            copy //sys/scheduler //tmp/q
                1: Command "copy" is not supported for //sys/scheduler/orchid of type "orchid"
            move //sys/client_config/default //tmp/q
                1: Node //sys/client_config/default cannot be removed: it is part of the system
            copy //sys/client_config/default //tmp/q
                ok
            get //tmp/q/@builtin
                %false
            set //tmp/a/@acl [{action=allow;subjects=[bob];permissions=[read]}]
                ok
            copy //tmp/a //tmp/p1
                ok
            copy //tmp/a //tmp/p2 -- preserve_acl=%true
                ok
            get //tmp/p1/@acl
                []
            get //tmp/p2/@acl
                [{"action"="allow";"subjects"=["bob";];"permissions"=["read";];"inheritance_mode"="object_and_descendants";};]
        "#]],
    );
}

#[test]
fn times_of_copies() {
    check(
        r#"
        set //tmp/a {b=1}
        get //tmp/a/@creation_time
        copy //tmp/a //tmp/c
        get //tmp/c/@creation_time
        copy //tmp/a //tmp/d -- preserve_creation_time=%true;preserve_modification_time=%true
        get //tmp/d/@creation_time
        get //tmp/d/@modification_time
        get //tmp/@modification_time
        set //tmp/d/b 2
        get //tmp/d/@modification_time
        get //tmp/d/b/@modification_time
        "#,
        expect![[r#"
            set //tmp/a {b=1}
                ok
            get //tmp/a/@creation_time
                "2026-01-02T03:04:06.000000Z"
            copy //tmp/a //tmp/c
                ok
            get //tmp/c/@creation_time
                "2026-01-02T03:04:07.000000Z"
            copy //tmp/a //tmp/d -- preserve_creation_time=%true;preserve_modification_time=%true
                ok
            get //tmp/d/@creation_time
                "2026-01-02T03:04:06.000000Z"
            get //tmp/d/@modification_time
                "2026-01-02T03:04:06.000000Z"
            get //tmp/@modification_time
                "2026-01-02T03:04:08.000000Z"
            set //tmp/d/b 2
                ok
            get //tmp/d/@modification_time
                "2026-01-02T03:04:06.000000Z"
            get //tmp/d/b/@modification_time
                "2026-01-02T03:04:09.000000Z"
        "#]],
    );
}

#[test]
fn links() {
    check(
        r#"
        set //tmp/a {b=1}
        link //tmp/a //tmp/l
        get //tmp/l
        get //tmp/l/b
        get //tmp/l/@type
        get //tmp/l&/@type
        get //tmp/l&/@target_path
        get //tmp/l&/@broken
        set //tmp/l/c 2
        get //tmp/a
        link //tmp/zz //tmp/m
        link //tmp/zz //tmp/m -- force=%true
        get //tmp/m
        exists //tmp/m
        exists //tmp/m&
        get //tmp/m&/@broken
        link //tmp/a //tmp/l
        link //tmp/a //tmp/l -- ignore_existing=%true
        link //tmp/l //tmp/l -- force=%true
        link //tmp/l2 //tmp/l1 -- force=%true
        link //tmp/l1 //tmp/l2 -- force=%true
        create map_node //tmp/l -- ignore_existing=%true
        create table //tmp/l -- ignore_existing=%true
        copy //tmp/l //tmp/copied
        get //tmp/copied/@type
        copy //tmp/l& //tmp/copied_link
        get //tmp/copied_link&/@type
        remove //tmp/l
        exists //tmp/a
        exists //tmp/l&
        exists //sys/pools&
        exists //sys/pools
        "#,
        expect![[r#"
            set //tmp/a {b=1}
                ok
            link //tmp/a //tmp/l
                ok
            get //tmp/l
                {"b"=1;}
            get //tmp/l/b
                1
            get //tmp/l/@type
                "map_node"
            get //tmp/l&/@type
                "link"
            get //tmp/l&/@target_path
                "//tmp/a"
            get //tmp/l&/@broken
                %false
            set //tmp/l/c 2
                ok
            get //tmp/a
                {"b"=1;"c"=2;}
            link //tmp/zz //tmp/m
                500: Node //tmp has no child with key "zz"
            link //tmp/zz //tmp/m -- force=%true
                ok
            get //tmp/m
                500: Node //tmp has no child with key "zz"
            exists //tmp/m
                false
            exists //tmp/m&
                true
            get //tmp/m&/@broken
                %true
            link //tmp/a //tmp/l
                501: Node //tmp/l already exists
            link //tmp/a //tmp/l -- ignore_existing=%true
                ok
            link //tmp/l //tmp/l -- force=%true
                1: Link //tmp/l cannot lead to //tmp/l <- 500: Link //tmp/l leads through more than 32 links
            link //tmp/l2 //tmp/l1 -- force=%true
                ok
            link //tmp/l1 //tmp/l2 -- force=%true
                1: Link //tmp/l2 cannot lead to //tmp/l1 <- 500: Link //tmp/l2 leads through more than 32 links
            create map_node //tmp/l -- ignore_existing=%true
                ok
            create table //tmp/l -- ignore_existing=%true
                501: Node //tmp/l already exists
            copy //tmp/l //tmp/copied
                ok
            get //tmp/copied/@type
                "map_node"
            copy //tmp/l& //tmp/copied_link
                ok
            get //tmp/copied_link&/@type
                "link"
            remove //tmp/l
                ok
            exists //tmp/a
                true
            exists //tmp/l&
                false
            exists //sys/pools&
                true
            exists //sys/pools
                false
        "#]],
    );
}

#[test]
fn files_share_and_release_blobs() {
    check(
        r#"
        create file //tmp/f -- attributes={executable=%true;file_name=x}
        get //tmp/f/@uncompressed_data_size
        write //tmp/f 4
        get //tmp/f/@uncompressed_data_size
        get //tmp/f/@md5
        copy //tmp/f //tmp/g
        write //tmp/f 5
        remove //tmp/g
        create file //tmp/f -- force=%true
        write //tmp 6
        create file //tmp/h -- attributes={executable=5}
        get //tmp/@recursive_resource_usage
        "#,
        expect![[r#"
            create file //tmp/f -- attributes={executable=%true;file_name=x}
                ok
            get //tmp/f/@uncompressed_data_size
                0
            write //tmp/f 4
                ok
            get //tmp/f/@uncompressed_data_size
                40
            get //tmp/f/@md5
                "d41d"
            copy //tmp/f //tmp/g
                ok
            write //tmp/f 5
                ok
            remove //tmp/g
                ok released [4]
            create file //tmp/f -- force=%true
                ok released [5]
            write //tmp 6
                1: Command "write_file" is not supported for //tmp of type "map_node"
            create file //tmp/h -- attributes={executable=5}
                1: Attribute //tmp/h/@executable: expected boolean, found int64
            get //tmp/@recursive_resource_usage
                {"node_count"=2;"chunk_count"=0;"disk_space"=0;"disk_space_per_medium"={"default"=0;};"tablet_count"=0;"tablet_static_memory"=0;}
        "#]],
    );
}

#[test]
fn limits() {
    let limits = Limits {
        max_key_length: 5,
        max_child_count: 3,
        max_string_length: 4,
        max_attribute_size: 30,
        max_value_depth: 3,
        max_depth: 4,
        ..Limits::default()
    };
    let mut console = Console::new();
    // The layout itself is larger than these limits.
    console.tree = cypress::Tree::restore(&console.records, limits).expect("good records");
    check_on(
        &mut console,
        r#"
        set //tmp/abcdef 1
        set //tmp/abcde 1
        set //tmp/a {a=1;b=2;c=3;d=4}
        set //tmp/a {a=1;b=2;c=3}
        set //tmp/a/d 4
        set //tmp/a/c/d 4
        set //tmp/s abcd
        set //tmp/s abcde
        set //tmp/@k "0123456789012345678901234567890"
        set //tmp/@k [[[]]]
        set //tmp/@k [[<a=1>[]]]
        set //tmp/@k [[[[]]]]
        set //tmp/@k/0/0/b/c 1 -- recursive=%true
        set //tmp/@k/0/0/@b [1]
        set //tmp/@abcdef 1
        create document //tmp/a -- force=%true;attributes={value="0123456789012345678901234567890"}
        remove //tmp/abcde
        set //tmp/d {a={b=1}}
        set //tmp/d/a/b2 {}
        remove //tmp/d -- recursive=%true
        set //tmp/d {a={b={}}}
        set //tmp/d {a={b={c=1}}} -- force=%true
        set //tmp/d/a/b/c 1
        "#,
        expect![[r#"
            set //tmp/abcdef 1
                505: Length of a key of a map node is 6, more than the limit of 5
            set //tmp/abcde 1
                ok
            set //tmp/a {a=1;b=2;c=3;d=4}
                502: Number of children of //tmp/a is 4, more than the limit of 3
            set //tmp/a {a=1;b=2;c=3}
                ok
            set //tmp/a/d 4
                502: Number of children of //tmp/a is 4, more than the limit of 3
            set //tmp/a/c/d 4
                500: //tmp/a/c cannot have children: it is of type "int64_node"
            set //tmp/s abcd
                ok
            set //tmp/s abcde
                503: String length of //tmp/s is 5, more than the limit of 4
            set //tmp/@k "0123456789012345678901234567890"
                504: Size of //tmp/@k is 33, more than the limit of 30
            set //tmp/@k [[[]]]
                ok
            set //tmp/@k [[<a=1>[]]]
                ok
            set //tmp/@k [[[[]]]]
                1: Nesting of //tmp/@k is 4, more than the limit of 3
            set //tmp/@k/0/0/b/c 1 -- recursive=%true
                500: Node //tmp/@k/0/0 has no child with index b: it has 0 items
            set //tmp/@k/0/0/@b [1]
                1: Nesting of //tmp/@k is 4, more than the limit of 3
            set //tmp/@abcdef 1
                505: Length of an attribute's name is 6, more than the limit of 5
            create document //tmp/a -- force=%true;attributes={value="0123456789012345678901234567890"}
                504: Size of //tmp/a is 33, more than the limit of 30
            remove //tmp/abcde
                ok
            set //tmp/d {a={b=1}}
                ok
            set //tmp/d/a/b2 {}
                ok
            remove //tmp/d -- recursive=%true
                ok
            set //tmp/d {a={b={}}}
                ok
            set //tmp/d {a={b={c=1}}} -- force=%true
                1: Depth of a node in //tmp/d/a/b is 5, more than the limit of 4
            set //tmp/d/a/b/c 1
                1: Depth of a node in //tmp/d/a/b is 5, more than the limit of 4
        "#]],
    );
}
