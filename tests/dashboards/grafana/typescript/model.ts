// SPDX-License-Identifier: Apache-2.0
// The JSON of a dashboard as Grafana's own types have it, without their loose ends: options and field
// configuration are those of the panel's kind, overrides those of its fields, targets those of InfluxQL.
import type {
  AnnotationQuery,
  Dashboard,
  DataQuery,
  DataSourceRef,
  FieldConfig,
  MatcherConfig,
  Panel,
  VariableModel,
} from '@grafana/schema';
import type * as StateTimeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as Stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as Text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as TimeSeries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// A type as JSON writes it: the text of an enumeration instead of its member.
type Json<T> = unknown extends T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends readonly (infer E)[]
        ? Json<E>[]
        : { [K in keyof T]: Json<T[K]> };

interface InfluxTarget extends DataQuery {
  datasource: DataSourceRef;
  rawQuery: true;
  query: string;
  resultFormat: 'time_series' | 'table';
  alias?: string;
}

interface InfluxAnnotationTarget extends DataQuery {
  query: string;
  queryType: 'tags';
  fromAnnotations: true;
  name: string;
  titleColumn: string;
  textColumn: string;
  tagsColumn: string;
  timeEndColumn: string;
}

type Fields = Omit<FieldConfig, 'custom'>;
type Property<Custom> =
  | { [K in keyof Fields]-?: { id: K; value: Json<Required<Fields>[K]> } }[keyof Fields]
  | { [K in keyof Custom & string]-?: { id: `custom.${K}`; value: Json<Required<Custom>[K]> } }[keyof Custom & string];

interface Overridden<Custom> {
  matcher: Omit<MatcherConfig, 'options'> & { id: 'byName'; options: string };
  properties: Property<Custom>[];
}

type Kind<Name extends string, Options, Custom> = Json<
  Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'id' | 'gridPos'>
> & {
  type: Name;
  id: number;
  gridPos: NonNullable<Panel['gridPos']>;
  targets?: Json<InfluxTarget>[];
  options: Json<Options>;
  fieldConfig: { defaults: Json<Fields> & { custom?: Json<Custom> }; overrides: Overridden<Custom>[] };
};

type GoldenPanel =
  | Kind<'timeseries', TimeSeries.Options, TimeSeries.FieldConfig>
  | Kind<'stat', Stat.Options, Record<never, never>>
  | Kind<'state-timeline', StateTimeline.Options, StateTimeline.FieldConfig>
  | Kind<'table', Table.Options, Table.FieldConfig>
  | Kind<'text', Text.Options, Record<never, never>>;

type BuiltIn = Json<AnnotationQuery> & { builtIn: 1 };
type InfluxAnnotation = Omit<Json<AnnotationQuery>, 'target' | 'builtIn'> & { target: Json<InfluxAnnotationTarget> };

export type GoldenDashboard = Json<Omit<Dashboard, 'panels' | 'annotations' | 'templating'>> & {
  panels: GoldenPanel[];
  annotations: { list: (BuiltIn | InfluxAnnotation)[] };
  templating: { list: Json<VariableModel>[] };
};
