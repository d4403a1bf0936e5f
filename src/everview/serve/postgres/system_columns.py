"""The columns of pg_catalog and information_schema, as far as clients ask for them.

A column is a name and the letter of its type: ``o`` an OID, ``i`` a number, ``r`` a real number, ``b`` a truth value,
``s`` text, ``n`` numbers in an array, ``t`` texts in an array, ``m`` a moment. With ``?`` it is NULL unless a row says
otherwise; without, it is 0, false, the empty text or the empty array.
"""

from __future__ import annotations

from typing import Any, Final

from everview.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, Array, Field, Schema, Type

_KINDS: Final[dict[str, tuple[Type, Any]]] = {
    "o": (BIGINT, 0),
    "i": (INTEGER, 0),
    "r": (DOUBLE, 0.0),
    "b": (BOOLEAN, False),
    "s": (STRING, ""),
    "n": (Array(INTEGER), []),
    "t": (Array(STRING), []),
    "m": (TIMESTAMP, None),
}

_TABLE_PRIVILEGES: Final = (
    "grantor s grantee s table_catalog s table_schema s table_name s privilege_type s is_grantable s with_hierarchy s"
)
_COLUMNS: Final = {
    "pg_namespace": "oid o nspname s nspowner o nspacl t?",
    "pg_class": (
        "oid o relname s relnamespace o reltype o reloftype o relowner o relam o relfilenode o reltablespace o "
        "relpages i reltuples r relallvisible i reltoastrelid o relhasindex b relisshared b relpersistence s relkind s "
        "relnatts i relchecks i relhasrules b relhastriggers b relhassubclass b relrowsecurity b "
        "relforcerowsecurity b relispopulated b relreplident s relispartition b relrewrite o relfrozenxid o "
        "relminmxid o relacl t? reloptions t? relpartbound s? relhasoids b"
    ),
    "pg_attribute": (
        "attrelid o attname s atttypid o attstattarget i attlen i attnum i attndims i attcacheoff i atttypmod i "
        "attbyval b attalign s attstorage s attcompression s attnotnull b atthasdef b atthasmissing b attidentity s "
        "attgenerated s attisdropped b attislocal b attinhcount i attcollation o attacl t? attoptions t? "
        "attfdwoptions t? attmissingval s?"
    ),
    "pg_type": (
        "oid o typname s typnamespace o typowner o typlen i typbyval b typtype s typcategory s typispreferred b "
        "typisdefined b typdelim s typrelid o typsubscript s typelem o typarray o typinput s typoutput s typreceive s "
        "typsend s typmodin s typmodout s typanalyze s typalign s typstorage s typnotnull b typbasetype o typtypmod i "
        "typndims i typcollation o typdefaultbin s? typdefault s? typacl t?"
    ),
    "pg_attrdef": "oid o adrelid o adnum i adbin s",
    "pg_constraint": (
        "oid o conname s connamespace o contype s condeferrable b condeferred b convalidated b conrelid o contypid o "
        "conindid o conparentid o confrelid o confupdtype s confdeltype s confmatchtype s conislocal b coninhcount i "
        "connoinherit b conkey n? confkey n? conpfeqop n? conppeqop n? conffeqop n? confdelsetcols n? conexclop n? "
        "conbin s?"
    ),
    "pg_index": (
        "indexrelid o indrelid o indnatts i indnkeyatts i indisunique b indnullsnotdistinct b indisprimary b "
        "indisexclusion b indimmediate b indisclustered b indisvalid b indcheckxmin b indisready b indislive b "
        "indisreplident b indkey n indcollation n indclass n indoption n indexprs s? indpred s?"
    ),
    "pg_description": "objoid o classoid o objsubid i description s",
    "pg_shdescription": "objoid o classoid o description s",
    "pg_proc": (
        "oid o proname s pronamespace o proowner o prolang o procost r prorows r provariadic o prosupport s prokind s "
        "prosecdef b proleakproof b proisstrict b proretset b provolatile s proparallel s pronargs i pronargdefaults i "
        "prorettype o proargtypes n proallargtypes n? proargmodes t? proargnames t? proargdefaults s? protrftypes n? "
        "prosrc s probin s? prosqlbody s? proconfig t? proacl t? proisagg b proiswindow b"
    ),
    "pg_database": (
        "oid o datname s datdba o encoding i datlocprovider s datistemplate b datallowconn b datconnlimit i "
        "datlastsysoid o datfrozenxid o datminmxid o dattablespace o datcollate s datctype s daticulocale s? "
        "datcollversion s? datacl t?"
    ),
    "pg_roles": (
        "oid o rolname s rolsuper b rolinherit b rolcreaterole b rolcreatedb b rolcanlogin b rolreplication b "
        "rolconnlimit i rolpassword s? rolvaliduntil m? rolbypassrls b rolconfig t?"
    ),
    "pg_user": (
        "usename s usesysid o usecreatedb b usesuper b userepl b usebypassrls b passwd s? valuntil m? useconfig t?"
    ),
    "pg_auth_members": "roleid o member o grantor o admin_option b",
    "pg_am": "oid o amname s amhandler s amtype s",
    "pg_collation": (
        "oid o collname s collnamespace o collowner o collprovider s collisdeterministic b collencoding i "
        "collcollate s? collctype s? colliculocale s? collversion s?"
    ),
    "pg_settings": (
        "name s setting s unit s? category s short_desc s extra_desc s? context s vartype s source s min_val s? "
        "max_val s? enumvals t? boot_val s? reset_val s? sourcefile s? sourceline i? pending_restart b"
    ),
    "pg_tables": (
        "schemaname s tablename s tableowner s tablespace s? hasindexes b hasrules b hastriggers b rowsecurity b"
    ),
    "pg_views": "schemaname s viewname s viewowner s definition s?",
    "pg_matviews": ("schemaname s matviewname s matviewowner s tablespace s? hasindexes b ispopulated b definition s?"),
    "pg_indexes": "schemaname s tablename s indexname s tablespace s? indexdef s?",
    "pg_sequence": ("seqrelid o seqtypid o seqstart o seqincrement o seqmax o seqmin o seqcache o seqcycle b"),
    "pg_sequences": (
        "schemaname s sequencename s sequenceowner s data_type s start_value o min_value o max_value o increment_by o "
        "cycle b cache_size o last_value o?"
    ),
    "pg_enum": "oid o enumtypid o enumsortorder r enumlabel s",
    "pg_range": ("rngtypid o rngsubtype o rngmultitypid o rngcollation o rngsubopc o rngcanonical s rngsubdiff s"),
    "pg_inherits": "inhrelid o inhparent o inhseqno i inhdetachpending b",
    "pg_trigger": (
        "oid o tgrelid o tgparentid o tgname s tgfoid o tgtype i tgenabled s tgisinternal b tgconstrrelid o "
        "tgconstrindid o tgconstraint o tgdeferrable b tginitdeferred b tgnargs i tgattr n tgargs s? tgqual s? "
        "tgoldtable s? tgnewtable s?"
    ),
    "pg_policy": ("oid o polname s polrelid o polcmd s polpermissive b polroles n polqual s? polwithcheck s?"),
    "pg_extension": (
        "oid o extname s extowner o extnamespace o extrelocatable b extversion s extconfig n? extcondition t?"
    ),
    "pg_available_extensions": "name s default_version s installed_version s? comment s?",
    "pg_language": (
        "oid o lanname s lanowner o lanispl b lanpltrusted b lanplcallfoid o laninline o lanvalidator o lanacl t?"
    ),
    "pg_operator": (
        "oid o oprname s oprnamespace o oprowner o oprkind s oprcanmerge b oprcanhash b oprleft o oprright o "
        "oprresult o oprcom o oprnegate o oprcode s oprrest s oprjoin s"
    ),
    "pg_opclass": (
        "oid o opcmethod o opcname s opcnamespace o opcowner o opcfamily o opcintype o opcdefault b opckeytype o"
    ),
    "pg_opfamily": "oid o opfmethod o opfname s opfnamespace o opfowner o",
    "pg_aggregate": "aggfnoid s aggkind s aggnumdirectargs i aggtransfn s aggfinalfn s aggtranstype o",
    "pg_depend": "classid o objid o objsubid i refclassid o refobjid o refobjsubid i deptype s",
    "pg_shdepend": "dbid o classid o objid o objsubid i refclassid o refobjid o deptype s",
    "pg_rewrite": ("oid o rulename s ev_class o ev_type s ev_enabled s is_instead b ev_qual s? ev_action s?"),
    "pg_tablespace": "oid o spcname s spcowner o spcacl t? spcoptions t?",
    "pg_foreign_table": "ftrelid o ftserver o ftoptions t?",
    "pg_foreign_server": "oid o srvname s srvowner o srvfdw o srvtype s? srvversion s? srvacl t? srvoptions t?",
    "pg_foreign_data_wrapper": "oid o fdwname s fdwowner o fdwhandler o fdwvalidator o fdwacl t? fdwoptions t?",
    "pg_statistic_ext": (
        "oid o stxrelid o stxname s stxnamespace o stxowner o stxstattarget i stxkeys n stxkind t stxexprs s?"
    ),
    "pg_publication": "oid o pubname s pubowner o puballtables b pubinsert b pubupdate b pubdelete b pubtruncate b",
    "pg_publication_rel": "oid o prpubid o prrelid o prqual s? prattrs n?",
    "pg_publication_namespace": "oid o pnpubid o pnnspid o",
    "pg_partitioned_table": (
        "partrelid o partstrat s partnatts i partdefid o partattrs n partclass n partcollation n partexprs s?"
    ),
    "pg_event_trigger": "oid o evtname s evtevent s evtowner o evtfoid o evtenabled s evttags t?",
    "pg_cast": "oid o castsource o casttarget o castfunc o castcontext s castmethod s",
    "pg_conversion": "oid o conname s connamespace o conowner o conforencoding i contoencoding i condefault b",
    "pg_locks": "locktype s database o? relation o? pid i? mode s granted b",
    "pg_stat_activity": (
        "datid o? datname s? pid i usesysid o? usename s? application_name s? client_addr s? client_port i? "
        "backend_start m? xact_start m? query_start m? state s? query s? backend_type s?"
    ),
    "pg_stat_user_tables": "relid o schemaname s relname s seq_scan o n_live_tup o n_dead_tup o",
    "pg_get_keywords": "word s catcode s barelabel b catdesc s baredesc s",
    "pg_timezone_names": "name s abbrev s is_dst b",
    "information_schema.schemata": (
        "catalog_name s schema_name s schema_owner s default_character_set_catalog s? default_character_set_schema s? "
        "default_character_set_name s? sql_path s?"
    ),
    "information_schema.tables": (
        "table_catalog s table_schema s table_name s table_type s self_referencing_column_name s? "
        "reference_generation s? user_defined_type_catalog s? user_defined_type_schema s? user_defined_type_name s? "
        "is_insertable_into s is_typed s commit_action s?"
    ),
    "information_schema.columns": (
        "table_catalog s table_schema s table_name s column_name s ordinal_position i column_default s? is_nullable s "
        "data_type s character_maximum_length i? character_octet_length i? numeric_precision i? "
        "numeric_precision_radix i? numeric_scale i? datetime_precision i? interval_type s? interval_precision i? "
        "character_set_name s? collation_name s? domain_name s? udt_catalog s udt_schema s udt_name s "
        "is_self_referencing s is_identity s identity_generation s? is_generated s generation_expression s? "
        "is_updatable s"
    ),
    "information_schema.views": (
        "table_catalog s table_schema s table_name s view_definition s? check_option s is_updatable s "
        "is_insertable_into s"
    ),
    "information_schema.table_constraints": (
        "constraint_catalog s constraint_schema s constraint_name s table_catalog s table_schema s table_name s "
        "constraint_type s is_deferrable s initially_deferred s enforced s"
    ),
    "information_schema.key_column_usage": (
        "constraint_catalog s constraint_schema s constraint_name s table_catalog s table_schema s table_name s "
        "column_name s ordinal_position i position_in_unique_constraint i?"
    ),
    "information_schema.constraint_column_usage": (
        "table_catalog s table_schema s table_name s column_name s constraint_catalog s constraint_schema s "
        "constraint_name s"
    ),
    "information_schema.referential_constraints": (
        "constraint_catalog s constraint_schema s constraint_name s unique_constraint_catalog s? "
        "unique_constraint_schema s? unique_constraint_name s? match_option s update_rule s delete_rule s"
    ),
    "information_schema.check_constraints": (
        "constraint_catalog s constraint_schema s constraint_name s check_clause s"
    ),
    "information_schema.routines": (
        "specific_catalog s specific_schema s specific_name s routine_catalog s routine_schema s routine_name s "
        "routine_type s data_type s? routine_definition s?"
    ),
    "information_schema.table_privileges": _TABLE_PRIVILEGES,
    "information_schema.role_table_grants": _TABLE_PRIVILEGES,
    "information_schema.column_privileges": (
        "grantor s grantee s table_catalog s table_schema s table_name s column_name s privilege_type s is_grantable s"
    ),
    "information_schema.sequences": (
        "sequence_catalog s sequence_schema s sequence_name s data_type s start_value s increment s"
    ),
    "information_schema.triggers": (
        "trigger_catalog s trigger_schema s trigger_name s event_manipulation s event_object_schema s "
        "event_object_table s"
    ),
}


def _columns_of(text: str) -> tuple[tuple[Field, Any], ...]:
    words = text.split()
    made: list[tuple[Field, Any]] = []
    for name, kind in zip(words[::2], words[1::2], strict=True):
        type_, default = _KINDS[kind[0]]
        nullable = kind.endswith("?")
        made.append((Field(name, type_), None if nullable else default))
    return tuple(made)


_MADE: Final = {name: _columns_of(text) for name, text in _COLUMNS.items()}
SYSTEM_SCHEMAS: Final = {name: Schema(field for field, _ in columns) for name, columns in _MADE.items()}
SYSTEM_DEFAULTS: Final = {name: {field.name: value for field, value in columns} for name, columns in _MADE.items()}
