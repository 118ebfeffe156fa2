//! `//sys/cluster_nodes/<address>`: exec nodes and what administrators say about them.

use super::{attribute_value, dressed, missing, names, typed};
use crate::{Effect, Kernel};
use cypress::failures::{no_child, read_only_attribute};
use cypress::walk::{value_get, value_set};
use cypress::{GetOptions, Mounted};
use vocab::{Failure, Time};
use yson::ypath::Step;
use yson::{Map, Value};

impl Kernel {
    fn node_at<'s>(
        &self,
        at: &Mounted,
        steps: &'s [Step],
    ) -> Result<(&crate::nodes::Node, &'s [Step]), Failure> {
        let path = self.tree.path(at.node);
        let [step, rest @ ..] = steps else {
            return Err(Failure::new(format!("{path} is the map of all nodes, expected one of them")));
        };
        let key = step.key().ok_or_else(|| missing(&path, step))?;
        let node = self.nodes.get(&String::from_utf8_lossy(&key)).ok_or_else(|| no_child(&path, &key))?;
        Ok((node, rest))
    }

    pub(crate) fn get_nodes(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        let wanted = &options.attributes;
        match at.rest.as_slice() {
            [] => {
                let all = self.nodes.iter().map(|node| {
                    let attributes = || self.attributes_of_node(at, node, wanted);
                    (node.address.as_str(), dressed(Value::Entity, wanted, attributes))
                });
                Ok(self.root_value(at, options, self.nodes.iter().count(), all))
            }
            [Step::Attribute(_) | Step::AllAttributes, ..] => {
                self.root_attributes(at, options, self.nodes.iter().count())
            }
            steps => {
                let (node, rest) = self.node_at(at, steps)?;
                let path =
                    format!("{}/{}", self.tree.path(at.node), yson::ypath::escape_literal(&node.address));
                match rest {
                    [] => {
                        let orchid =
                            dressed(Value::Entity, wanted, || self.attributes_of_orchid(at, node, wanted));
                        let children = Value::Map(yson::map! { "orchid" => orchid });
                        Ok(dressed(children, wanted, || self.attributes_of_node(at, node, wanted)))
                    }
                    [Step::AllAttributes] => {
                        Ok(crate::tree::only(self.attributes_of_node(at, node, wanted), wanted).into())
                    }
                    [Step::Attribute(name), inside @ ..] => {
                        let asked = [String::from_utf8_lossy(name).into_owned()];
                        attribute_value(&path, &self.attributes_of_node(at, node, &asked), name, inside)
                    }
                    [Step::Child(key), inside @ ..] if key == b"orchid" => {
                        self.get_orchid_of_node(at, node, options, inside)
                    }
                    [step, ..] => Err(missing(&path, step)),
                }
            }
        }
    }

    fn attributes_of_node(&self, at: &Mounted, node: &crate::nodes::Node, wanted: &[String]) -> Map {
        let common = self.common_attributes_of(at, &node.address, node.register_time, wanted);
        common.into_iter().chain(self.node_attributes(node, wanted)).collect()
    }

    fn attributes_of_orchid(&self, at: &Mounted, node: &crate::nodes::Node, wanted: &[String]) -> Map {
        let path = format!("{}/orchid", yson::ypath::escape_literal(&node.address));
        let path = format!("{}/{path}", self.tree.path(at.node));
        self.common_attributes(at.node, node.register_time, wanted)
            .into_iter()
            .chain(yson::map! { "key" => "orchid", "path" => path, "type" => "orchid", "opaque" => true })
            .collect()
    }

    fn get_orchid_of_node(
        &self,
        at: &Mounted,
        node: &crate::nodes::Node,
        options: &GetOptions,
        inside: &[Step],
    ) -> Result<Value, Failure> {
        let wanted = &options.attributes;
        let path =
            format!("{}/{}/orchid", self.tree.path(at.node), yson::ypath::escape_literal(&node.address));
        match inside {
            [] => Ok(dressed(typed(self.node_orchid(node), wanted), wanted, || {
                self.attributes_of_orchid(at, node, wanted)
            })),
            [Step::AllAttributes] => {
                Ok(crate::tree::only(self.attributes_of_orchid(at, node, wanted), wanted).into())
            }
            [Step::Attribute(name), inside @ ..] => {
                let asked = [String::from_utf8_lossy(name).into_owned()];
                attribute_value(&path, &self.attributes_of_orchid(at, node, &asked), name, inside)
            }
            inside => Ok(typed(value_get(&self.node_orchid(node), &path, inside)?.into_owned(), wanted)),
        }
    }

    /// What the server knows of the jobs on a node (http-api.md 11.6, a surface of our own).
    fn node_orchid(&self, node: &crate::nodes::Node) -> Value {
        let jobs: Map = node
            .jobs
            .iter()
            .filter_map(|id| {
                let job = self.jobs.get(*id)?;
                let view = self.operations.get(&job.operation)?.controller.job(*id)?;
                let accounted = self.scheduler.allocation(job.allocation).map(|a| a.resource_usage);
                let learned = view.learned(accounted.unwrap_or(view.granted()));
                Some((id.to_string(), view.to_value().into_iter().chain(learned).collect::<Map>()))
            })
            .collect();
        let exec_node = yson::map! {
            "job_environment" => yson::map! {
                "type" => node.job_environment.as_str(),
                // Each alert about it names what it is about (jobs-and-nodes.md 4.1).
                "not_enforced" => node
                    .alerts
                    .iter()
                    .filter_map(|alert| alert.find_attribute("not_enforced")?.as_list())
                    .flatten()
                    .cloned()
                    .collect::<Vec<_>>(),
            },
            "job_controller" => yson::map! { "active_jobs" => jobs },
        };
        Value::Map(yson::map! { "exec_node" => exec_node })
    }

    pub(crate) fn list_nodes(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        if at.rest.is_empty() {
            return Ok(names(self.nodes.iter().map(|n| n.address.clone()), options, |address| {
                let node = self.nodes.get(address);
                node.map(|n| self.attributes_of_node(at, n, &options.attributes)).unwrap_or_default()
            }));
        }
        let value = self.get_nodes(at, &GetOptions::default())?;
        let map = value.as_map().ok_or_else(|| {
            cypress::failures::unsupported("list", &self.tree.show(&at.as_place()), value.type_name())
        })?;
        Ok(names(map.key_strings(), &GetOptions { attributes: Vec::new(), ..options.clone() }, |_| {
            Map::new()
        }))
    }

    pub(crate) fn set_nodes(
        &mut self,
        now: Time,
        at: &Mounted,
        value: Value,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (node, rest) = self.node_at(at, &at.rest)?;
        let path = self.tree.show(&at.as_place());
        let (address, settings) = (node.address.clone(), node.settings.clone());
        let [Step::Attribute(name), inside @ ..] = rest else { return Err(crate::tree::read_only(&path)) };
        let mut all = settings.to_map();
        let Some(old) = all.remove(name) else {
            let known = self.attributes_of_node(at, node, &[]).contains(name);
            return Err(if known {
                read_only_attribute(&path, name)
            } else {
                settings.changed(&yson::map! { name => value }).err().unwrap_or_else(|| Failure::new(path))
            });
        };
        let mut new = old;
        value_set(&mut new, &path, inside, value, true)?;
        let settings = settings.changed(&yson::map! { name => new })?;
        self.set_node_settings(now, &address, settings, out);
        Ok(())
    }

    pub(crate) fn multiset_nodes(
        &mut self,
        now: Time,
        at: &Mounted,
        attributes: &Map,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (node, _) = self.node_at(at, &at.rest)?;
        let (address, settings) = (node.address.clone(), node.settings.changed(attributes)?);
        self.set_node_settings(now, &address, settings, out);
        Ok(())
    }
}
