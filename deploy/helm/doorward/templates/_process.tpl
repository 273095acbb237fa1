{{/*
Which process calls which: docs/architecture.md#who-calls-whom. The variables with
the addresses of peers and the network policies are made from this one list.
*/}}
{{- define "doorward.calls" -}}
gateway: [directory, application, oauth, mfa, notification, idsite]
directory: []
application: [directory]
mfa: [directory]
oauth: [directory, application, mfa]
notification: [directory, application, oauth]
idsite: [directory, application, oauth, mfa]
{{- end }}

{{/* Which process uses which server. */}}
{{- define "doorward.servers" -}}
gateway: [redis]
directory: [database, kafka]
application: [database, kafka]
mfa: [database, kafka]
oauth: [database, kafka]
notification: [database, kafka, mail]
idsite: [database, kafka]
migrate: [database]
toolbox: [database, redis, kafka, mail]
{{- end }}

{{- define "doorward.selector" -}}
app.kubernetes.io/name: doorward
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .process }}
{{- end }}

{{- define "doorward.releaseLabels" -}}
app.kubernetes.io/name: doorward
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $name, $value := .Values.labels }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "doorward.labels" -}}
{{ include "doorward.selector" . }}
{{- range $name, $value := .root.Values.labels }}
{{ $name }}: {{ $value | quote }}
{{- end }}
app.kubernetes.io/version: {{ include "doorward.tag" .root | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* What all Pods have, those of Jobs too. */}}
{{- define "doorward.podLabels" -}}
{{ include "doorward.labels" . }}
{{- range $name, $value := .root.Values.podLabels }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "doorward.podAnnotations" -}}
{{- range $name, $value := .root.Values.podAnnotations }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/*
A Service's name is a DNS label that begins with a letter, of 63 characters, of which the longest
component takes 13. Said here, before the migrations run: the API server would say it afterwards.
*/}}
{{- define "doorward.name" -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]{0,49}$" .root.Release.Name) }}
{{- fail (printf "the release name %q cannot be used: names of Services are made of it, so that it begins with a letter, has small letters, digits and hyphens, and at most 50 characters" .root.Release.Name) }}
{{- end -}}
{{ .root.Release.Name }}-{{ .process }}
{{- end }}

{{- define "doorward.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "doorward.image" -}}
{{- $image := .root.Values.image -}}
{{- with index $image.digests .process -}}
{{ $image.registry }}/{{ $.process }}@{{ . }}
{{- else -}}
{{ $image.registry }}/{{ $.process }}:{{ include "doorward.tag" $.root }}
{{- end }}
{{- end }}

{{/*
The secrets of a process: a line for each variable, with its Secret and key. The
value is mounted as a file, which the variable NAME_FILE names.
*/}}
{{- define "doorward.secrets" -}}
{{- $v := .root.Values -}}
{{- $servers := index (include "doorward.servers" .root | fromYaml) .process -}}
{{- if ne .process "migrate" }}
DOORWARD_INTERNAL_SECRET: {{ toJson $v.secrets.internalSecret }}
{{- if $v.secrets.internalSecretAccepted.name }}
DOORWARD_INTERNAL_SECRET_ACCEPTED: {{ toJson $v.secrets.internalSecretAccepted }}
{{- end }}
{{- end }}
{{- if has .process (list "migrate" "toolbox") }}
DATABASE_URL: {{ toJson $v.database.url }}
{{- range $service, $url := $v.database.services }}
{{ upper $service }}_DATABASE_URL: {{ toJson $url }}
{{- end }}
{{- else if has "database" $servers }}
DOORWARD_MASTER_KEY: {{ toJson $v.secrets.masterKey }}
{{- with index $v.database.services .process }}
{{ upper $.process }}_DATABASE_URL: {{ toJson . }}
{{- else }}
DATABASE_URL: {{ toJson $v.database.url }}
{{- end }}
{{- end }}
{{- if eq .process "toolbox" }}
DOORWARD_MASTER_KEY: {{ toJson $v.secrets.masterKey }}
{{- if eq $v.tls.mode "certificate" }}
DOORWARD_TLS_CERT: {{ dict "name" $v.tls.secret "key" "tls.crt" | toJson }}
{{- end }}
{{- end }}
{{- if has "redis" $servers }}
REDIS_URL: {{ toJson $v.redis.url }}
{{- end }}
{{- if and (has "kafka" $servers) $v.kafka.username }}
KAFKA_PASSWORD: {{ toJson $v.kafka.password }}
{{- end }}
{{- if has "mail" $servers }}
DOORWARD_SMTP_URL: {{ toJson $v.mail.url }}
{{- if and (eq .process "notification") (eq $v.sms.provider "twilio") }}
DOORWARD_SMS_TWILIO_AUTH_TOKEN: {{ toJson $v.sms.authToken }}
{{- end }}
{{- end }}
{{- if and $v.internalTLS.secret (eq .process "toolbox") }}
DOORWARD_INTERNAL_TLS_CERT: {{ dict "name" $v.internalTLS.secret "key" "tls.crt" | toJson }}
{{- else if and $v.internalTLS.secret (not (has .process (list "gateway" "migrate"))) }}
DOORWARD_INTERNAL_TLS_CERT: {{ dict "name" $v.internalTLS.secret "key" "tls.crt" | toJson }}
DOORWARD_INTERNAL_TLS_KEY: {{ dict "name" $v.internalTLS.secret "key" "tls.key" | toJson }}
{{- end }}
{{- if and (eq .process "gateway") (eq $v.tls.mode "certificate") }}
DOORWARD_TLS_CERT: {{ dict "name" $v.tls.secret "key" "tls.crt" | toJson }}
DOORWARD_TLS_KEY: {{ dict "name" $v.tls.secret "key" "tls.key" | toJson }}
{{- end }}
{{- if and (eq .process "idsite") $v.bootstrap.keyId.name }}
DOORWARD_BOOTSTRAP_KEY_ID: {{ toJson $v.bootstrap.keyId }}
DOORWARD_BOOTSTRAP_KEY_SECRET: {{ toJson $v.bootstrap.keySecret }}
{{- end }}
{{- end }}

{{/* The variables of a process that are no secret. An empty one is left out. */}}
{{- define "doorward.plain" -}}
{{- $v := .root.Values -}}
{{- $servers := index (include "doorward.servers" .root | fromYaml) .process -}}
{{- if ne .process "migrate" }}
DOORWARD_BASE_URL: {{ required "baseUrl is missing: set it to the public address, https://host/v1" $v.baseUrl | quote }}
{{- end }}
{{- if not (has .process (list "migrate" "toolbox")) }}
DOORWARD_FORMER_BASE_URLS: {{ join "," $v.formerBaseUrls | quote }}
DOORWARD_ALIAS: {{ $v.alias | quote }}
DOORWARD_DRAIN: "{{ $v.drainSeconds }}s"
DOORWARD_STOP_TIMEOUT: "{{ $v.stopSeconds }}s"
DOORWARD_LOG_LEVEL: {{ $v.logLevel | quote }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ $v.monitoring.tracesEndpoint | quote }}
{{- range index (include "doorward.calls" .root | fromYaml) .process }}
DOORWARD_{{ upper . }}_URL: "{{ ternary "https" "http" (ne $v.internalTLS.secret "") }}://{{ $.root.Release.Name }}-{{ . }}:8080"
{{- end }}
{{- end }}
{{- with dig .process "poolSize" 0 $v.processes }}
DOORWARD_DATABASE_POOL_SIZE: {{ . | quote }}
{{- end }}
{{- if eq .process "toolbox" }}
DOORWARD_OPERATOR: {{ $v.toolbox.operator | quote }}
{{- end }}
{{- if has "kafka" $servers }}
KAFKA_BROKERS: {{ required "kafka.brokers is empty: name at least one, host:port" (join "," $v.kafka.brokers) | quote }}
KAFKA_TLS: {{ $v.kafka.tls | quote }}
DOORWARD_KAFKA_PARTITIONS: {{ $v.kafka.partitions | quote }}
{{- if $v.kafka.username }}
KAFKA_USERNAME: {{ $v.kafka.username | quote }}
KAFKA_SASL_MECHANISM: {{ $v.kafka.mechanism | quote }}
{{- end }}
{{- end }}
{{- if has .process (list "gateway" "application" "oauth" "idsite" "toolbox") }}
DOORWARD_CLIENT_API_SUFFIX: {{ $v.clientApiSuffix | quote }}
{{- end }}
{{- if has .process (list "gateway" "idsite") }}
DOORWARD_SIGN_UP: {{ $v.signUp | quote }}
{{- end }}
{{- if has .process (list "directory" "notification") }}
DOORWARD_MAIL_FROM: {{ $v.mail.from | quote }}
DOORWARD_MAIL_FROM_NAME: {{ $v.mail.fromName | quote }}
{{- end }}
{{- if and (eq .process "notification") $v.mail.helo }}
DOORWARD_SMTP_HELO: {{ $v.mail.helo | quote }}
{{- end }}
{{- if has .process (list "directory" "oauth" "notification" "idsite") }}
DOORWARD_OUTBOUND_PRIVATE_NETWORKS: {{ join "," $v.outbound.privateNetworks | quote }}
{{- end }}
{{- if eq .process "gateway" }}
DOORWARD_TLS: {{ $v.tls.mode | quote }}
DOORWARD_TRUSTED_HOPS: {{ $v.tls.trustedHops | quote }}
{{- end }}
{{- if eq .process "notification" }}
DOORWARD_SMS_PROVIDER: {{ $v.sms.provider | quote }}
DOORWARD_SMS_TWILIO_ACCOUNT_SID: {{ $v.sms.accountSid | quote }}
DOORWARD_SMS_TWILIO_FROM: {{ $v.sms.from | quote }}
{{- end }}
{{- if has .process (list "idsite" "toolbox") }}
DOORWARD_IDSITE_SUFFIX: {{ $v.idsiteSuffix | quote }}
{{- end }}
{{- if eq .process "idsite" }}
DOORWARD_BOOTSTRAP_OWNER_EMAIL: {{ $v.bootstrap.ownerEmail | quote }}
{{- end }}
{{- if or $v.authorities.configMap $v.authorities.secret }}
SSL_CERT_DIR: /etc/doorward/ca
{{- end }}
{{- end }}

{{/* Nine tenths of a container's memory, at which Go collects garbage more often. */}}
{{- define "doorward.memory" -}}
{{- if hasSuffix "Gi" . -}}{{ div (mul (trimSuffix "Gi" . | int) 1024 9) 10 }}MiB
{{- else -}}{{ div (mul (trimSuffix "Mi" . | int) 9) 10 }}MiB
{{- end -}}
{{- end }}

{{/*
The environment of a container; .own has the variables of values.yaml, which the process has to know:
it would refuse to start otherwise.
*/}}
{{- define "doorward.env" -}}
{{- $known := index (.root.Files.Get "variables.yaml" | fromYaml) .process | default list }}
{{- range $name, $value := .own }}
{{- if not (or (has (trimSuffix "_FILE" $name) $known) (regexMatch "^(GO[A-Z]+|OTEL_[A-Z_]+|SSL_CERT_(DIR|FILE)|TZ)$" $name)) }}
{{- fail (printf "processes.%s.env.%s: the process does not know this variable; its --help lists those that it knows" $.process $name) }}
{{- end }}
{{- end }}
{{- if hasKey (.own | default dict) "DOORWARD_DATABASE_POOL_SIZE" }}
{{- fail (printf "processes.%[1]s.env.DOORWARD_DATABASE_POOL_SIZE: set processes.%[1]s.poolSize, which database.maxConnections is compared with" .process) }}
{{- end }}
{{- range $name, $secret := include "doorward.secrets" . | fromYaml }}
- { name: {{ $name }}_FILE, value: /run/secrets/doorward/{{ $name }} }
{{- end }}
{{- $plain := include "doorward.plain" . | fromYaml -}}
{{- range $name, $value := merge (deepCopy (.own | default dict)) $plain }}
{{- if ne (toString $value) "" }}
- name: {{ $name }}
  value: {{ toString $value | quote }}
{{- end }}
{{- end }}
{{- if not (hasKey (.own | default dict) "GOMEMLIMIT") }}
- name: GOMEMLIMIT
  value: {{ include "doorward.memory" .resources.limits.memory | quote }}
{{- end }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "doorward.mounts" -}}
- { name: secrets, mountPath: /run/secrets/doorward, readOnly: true }
{{- if or .root.Values.authorities.configMap .root.Values.authorities.secret }}
- { name: authorities, mountPath: /etc/doorward/ca, readOnly: true }
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "doorward.volumes" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
    {{- range $name, $secret := include "doorward.secrets" . | fromYaml }}
    - secret:
        name: {{ $secret.name }}
        items: [{ key: {{ $secret.key | quote }}, path: {{ $name }} }]
    {{- end }}
{{- with .root.Values.authorities }}
{{- if .configMap }}
- name: authorities
  configMap: { name: {{ .configMap }} }
{{- else if .secret }}
- name: authorities
  secret: { secretName: {{ .secret }}, defaultMode: 0440 }
{{- end }}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
A digest of the secrets and authorities that a process reads when it starts, so that an upgrade
restarts it when one has changed. The internal secret, which no reader of the annotation knows, is
among them and keeps short ones from being guessed. Certificates are read again by the processes.
*/}}
{{- define "doorward.checksum" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $read := list -}}
{{- range $name, $secret := include "doorward.secrets" . | fromYaml }}
{{- if not (hasPrefix "DOORWARD_TLS_" $name | or (hasPrefix "DOORWARD_INTERNAL_TLS_" $name)) }}
{{- $read = append $read (dig "data" $secret.key "" (lookup "v1" "Secret" $namespace $secret.name)) }}
{{- end }}
{{- end }}
{{- with .root.Values.authorities.configMap }}
{{- $read = append $read (dig "data" dict (lookup "v1" "ConfigMap" $namespace .) | toJson) }}
{{- end }}
{{- with .root.Values.authorities.secret }}
{{- $read = append $read (dig "data" dict (lookup "v1" "Secret" $namespace .) | toJson) }}
{{- end }}
{{- toJson $read | sha256sum }}
{{- end }}

{{/* What the restricted level of Pod Security Standards asks for, and a read-only root. */}}
{{- define "doorward.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "doorward.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "doorward.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}
