/** Amounts of resources and shares of the cluster. */

import { bytes, number } from './format';

/** Absent keys are zero; `user_memory` and others beside these repeat one of them. */
export type Resources = Readonly<Record<string, number | undefined>>;

/** In the order in which they are shown everywhere. */
export const RESOURCES = ['cpu', 'memory', 'gpu', 'user_slots', 'network'] as const;
export type Resource = (typeof RESOURCES)[number];

const TITLES: Record<Resource, string> = {
  cpu: 'CPU',
  memory: 'Memory',
  gpu: 'GPU',
  user_slots: 'Slots',
  network: 'Network',
};

export const resourceTitle = (resource: string): string => TITLES[resource as Resource] ?? resource;

export const amountOf = (resources: Resources | undefined, resource: string): number =>
  resources?.[resource] ?? 0;

/** With its unit where the number alone would not say it. */
export function amount(resource: string, value: number | undefined): string {
  if (value === undefined) return '';
  return resource === 'memory' || resource === 'user_memory' ? bytes(value) : number(value);
}

/** With a word: `3 cores`, `2 GiB`, `4 slots`. */
export function amountInWords(resource: string, value: number): string {
  const plural = value === 1 ? '' : 's';
  switch (resource) {
    case 'cpu':
      return `${number(value)} core${plural}`;
    case 'user_slots':
      return `${number(value)} slot${plural}`;
    case 'gpu':
      return `${number(value)} GPU${plural}`;
    case 'memory':
      return bytes(value);
    default:
      return `${number(value)} ${resource}`;
  }
}

/** Everything that is not zero: `8 cores, 2 GiB`. */
export function resourcesInWords(resources: Resources | undefined): string {
  const parts = RESOURCES.filter(resource => amountOf(resources, resource) !== 0);
  if (parts.length === 0) return 'nothing';
  return parts.map(resource => amountInWords(resource, amountOf(resources, resource))).join(', ');
}

/** A share vector is worth its largest component. */
export function dominant(share: Resources | undefined): number {
  return Math.max(0, ...RESOURCES.map(resource => amountOf(share, resource)));
}

/** Part of the whole, 0 where there is no whole. */
export const ratio = (part: number, whole: number): number => (whole > 0 ? part / whole : 0);

/** Resources that the cluster has at all: no columns and fields for others. */
export const present = (total: Resources | undefined): Resource[] =>
  RESOURCES.filter(resource => amountOf(total, resource) > 0);

/** A volume of a share over time, as cores over time. */
export function coreTime(clusterSeconds: number | undefined, cores: number): string | undefined {
  if (clusterSeconds === undefined) return undefined;
  const coreSeconds = clusterSeconds * cores;
  if (coreSeconds < 600) return `${number(coreSeconds)} core seconds`;
  if (coreSeconds < 36_000) return `${number(coreSeconds / 60)} core minutes`;
  return `${number(coreSeconds / 3_600)} core hours`;
}
