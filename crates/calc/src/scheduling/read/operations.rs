//! Lines about operations and their allocations.

use super::values::{amounts, job, span, unknown, whole};
use super::{MANY, Reader};
use crate::Refusal;
use crate::read::{Node, Object};
use crate::scheduling::event::{Event, NewOperation};
use crate::scheduling::world::{Phase, TREE, Task};
use scheduler::config::{MAX_WEIGHT, MIN_WEIGHT};
use scheduler::{OperationDesc, PreemptionMode, RuntimeParameters, TagFilter, TreeParameters};
use vocab::{AllocationId, OperationId, OperationType, Resources};

impl Reader<'_> {
    pub fn operation(&self) -> Result<NewOperation, Refusal> {
        let name = self.about.text()?.to_owned();
        let good = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(good) {
            return Err(self.about.expected("a name of letters, digits, \"_\" and \"-\""));
        }
        if self.world.names.find_operation(&name).is_some() {
            return Err(self.about.expected("a new name, as one script has an operation once"));
        }
        let o = self.line;
        let user = o.optional("user", |n| n.text().map(str::to_owned))?.unwrap_or_else(|| "user".to_owned());
        let pool = o.optional("pool", |n| n.text().map(str::to_owned))?;
        let parameters = self.parameters(&RuntimeParameters::default())?;
        let trees = TreeParameters { tree: TREE.to_owned(), pool, parameters, ..TreeParameters::default() };
        let mut desc = OperationDesc::new(OperationId::default(), &user, self.world.now, trees);
        if let Some(kind) = o.get("type") {
            let types: Vec<_> = OperationType::ALL.iter().map(|t| (t.as_str(), *t)).collect();
            desc.operation_type = kind.choice(&types)?;
        }
        desc.is_gang = o.flag_or("is_gang", false)?;
        let modes = [("normal", PreemptionMode::Normal), ("graceful", PreemptionMode::Graceful)];
        desc.preemption_mode = o.optional("preemption_mode", |n| n.choice(&modes))?.unwrap_or_default();
        desc.apply_specified_resource_limits_to_demand =
            o.flag_or("apply_specified_resource_limits_to_demand", false)?;
        desc.require_specified_pools_existence =
            o.optional("require_specified_pools_existence", |n| n.flag())?;
        desc.fair_share_starvation_timeout = o.optional("fair_share_starvation_timeout", span)?;
        desc.fair_share_starvation_tolerance =
            o.optional("fair_share_starvation_tolerance", |n| n.number(0.0..=1.0, "a number from 0 to 1"))?;
        desc.non_preemptible_resource_usage_threshold =
            o.optional("non_preemptible_resource_usage_threshold", amounts)?;
        desc.allocation_preemption_timeout = o.optional("allocation_preemption_timeout", span)?;
        desc.allocation_graceful_preemption_timeout =
            o.optional("allocation_graceful_preemption_timeout", span)?;
        Ok(NewOperation {
            name,
            desc,
            tasks: self.tasks(None)?,
            gives_way: o.optional("gives_way", |n| self.time(&n))?,
            suspended: o.flag_or("suspended", false)?,
        })
    }

    fn parameters(&self, old: &RuntimeParameters) -> Result<RuntimeParameters, Refusal> {
        let mut parameters = old.clone();
        let o = self.line;
        if o.contains("weight") {
            parameters.weight =
                o.optional("weight", |n| n.number(MIN_WEIGHT..=MAX_WEIGHT, "a number from 2^-26 to 2^26"))?;
        }
        if o.contains("resource_limits") {
            parameters.resource_limits = o.optional("resource_limits", amounts)?.unwrap_or_default();
        }
        if o.contains("scheduling_tag_filter") {
            let filter = o.optional("scheduling_tag_filter", |n| {
                TagFilter::parse(n.text()?)
                    .map_err(|why| n.refuse(format!("expected a boolean formula of tags: {why}")))
            })?;
            parameters.scheduling_tag_filter = filter.unwrap_or_default();
        }
        Ok(parameters)
    }

    pub fn set_operation(&self) -> Result<Event, Refusal> {
        let id = self.live(&self.about)?;
        let pool = self.line.optional("pool", |n| n.text().map(str::to_owned))?;
        let parameters = self.parameters(&self.world.operations[&id].parameters)?;
        Ok(Event::SetOperation { id, pool, parameters })
    }

    /// `job` and `count`, or `tasks`; what is not said stays as it was.
    pub fn tasks(&self, old: Option<&Vec<Task>>) -> Result<Vec<Task>, Refusal> {
        if let Some(list) = self.line.get("tasks") {
            for key in ["job", "count"] {
                if self.line.contains(key) {
                    return Err(self
                        .line
                        .at(key)
                        .refuse("expected either this or tasks, found both".to_owned()));
                }
            }
            let tasks = list.list()?.zip(0..).map(|(node, i)| {
                let task = node.object(&["job", "count"])?;
                self.task(&task, old.and_then(|old| old.get(i)))
            });
            let tasks = tasks.collect::<Result<Vec<Task>, Refusal>>()?;
            if tasks.len() < old.map_or(1, Vec::len) {
                return Err(list.refuse("expected all tasks of the operation, at least one".to_owned()));
            }
            return Ok(tasks);
        }
        let mut tasks = old.cloned().unwrap_or_default();
        let first = self.task(self.line, tasks.first())?;
        match tasks.first_mut() {
            Some(task) => *task = first,
            None => tasks.push(first),
        }
        Ok(tasks)
    }

    fn task(&self, object: &Object<'_>, old: Option<&Task>) -> Result<Task, Refusal> {
        let job = object.optional("job", job)?.or(old.map(|t| t.job));
        let count = object.optional("count", |n| whole(&n, 0, 1_000_000))?.or(old.map(|t| t.count));
        let one_slot = Resources { user_slots: 1, ..Resources::ZERO };
        Ok(Task { job: job.unwrap_or(one_slot), count: count.unwrap_or(0) })
    }

    pub fn place(&self) -> Result<Event, Refusal> {
        let operation = self.live(&self.about)?;
        let known = &self.world.operations[&operation];
        if known.phase != Phase::Running {
            return Err(self
                .about
                .refuse(format!("expected a running operation, \"{}\" is pending", known.name)));
        }
        let nodes = match (self.line.get("node"), self.line.get("nodes")) {
            (Some(node), None) => vec![self.node(&node)?],
            (None, Some(nodes)) => self.some_nodes(&nodes)?,
            _ => return Err(self.line.at("node").refuse("expected either node or nodes".to_owned())),
        };
        let last = known.tasks.len() as i64 - 1;
        let task = self.line.optional("task", |n| whole(&n, 0, last))?.unwrap_or(0) as u32;
        let count = self.line.optional("count", |n| whole(&n, 1, MANY))?.unwrap_or(1) as u32;
        if self.world.places.len() + nodes.len() * count as usize > MANY as usize {
            return Err(self.about.refuse(format!("expected at most {MANY} allocations at a time")));
        }
        let resources = self.line.optional("resources", job)?.unwrap_or(known.tasks[task as usize].job);
        Ok(Event::Place { operation, task, nodes, count, resources })
    }

    /// An operation that has not ended.
    pub fn live(&self, node: &Node<'_>) -> Result<OperationId, Refusal> {
        let id = self.world.names.find_operation(node.text()?);
        let live = |id: &OperationId| {
            self.world.operations.get(id).filter(|o| matches!(o.phase, Phase::Pending | Phase::Running))
        };
        match id {
            Some(id) if live(&id).is_some() => Ok(id),
            Some(_) => Err(node.expected("an operation that has not ended")),
            None => {
                let known = self.world.operations.keys().filter_map(live).map(|o| o.name.as_str());
                Err(unknown(node, "operation", known))
            }
        }
    }

    pub fn allocation(&self, node: &Node<'_>) -> Result<AllocationId, Refusal> {
        let id = self.world.names.find_allocation(node.text()?);
        match id.filter(|id| self.world.places.contains_key(id)) {
            Some(id) => Ok(id),
            None if id.is_some() => Err(node.expected("an allocation that is not over")),
            None => Err(node.expected("an allocation such as \"A.3\", the third one of operation A")),
        }
    }

    /// An allocation that was told to go.
    pub fn leaving(&self, node: &Node<'_>) -> Result<AllocationId, Refusal> {
        let id = self.allocation(node)?;
        let place = &self.world.places[&id];
        let held = self.world.nodes.get(&place.node).and_then(|n| n.held.iter().find(|h| h.id == id));
        match held.is_some_and(|h| h.leaves.is_some()) {
            true => Ok(id),
            false => Err(node.expected("an allocation that was preempted; others end with finish")),
        }
    }
}
