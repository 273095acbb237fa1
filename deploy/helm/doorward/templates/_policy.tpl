{{/* The policy of a process or a Job: what may reach it, and what it may reach. */}}
{{- define "doorward.policy" -}}
{{- $root := .root }}
{{- $process := .process }}
{{- $scope := dict "root" $root "process" $process }}
{{- $job := not (hasKey $root.Values.processes $process) }}
{{- $calls := include "doorward.calls" $root | fromYaml }}
{{- $servers := include "doorward.servers" $root | fromYaml }}
{{- $internet := dig $process "internet" list $root.Values.processes }}
{{- $callers := list }}
{{- range $caller, $callees := $calls }}{{ if has $process $callees }}{{ $callers = append $callers $caller }}{{ end }}{{ end }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "doorward.name" $scope }}
  labels: {{- include "doorward.labels" $scope | nindent 4 }}
  {{- if eq $process "migrate" }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-weight: "-10"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  {{- end }}
spec:
  podSelector:
    matchLabels: {{- include "doorward.selector" $scope | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if $job }}
  ingress: []
  {{- else }}
  ingress:
    {{- if eq $process "gateway" }}
    - ports: [{ port: http }]
      {{- with $root.Values.networkPolicy.clients }}
      from: {{ toJson . }}
      {{- end }}
    {{- end }}
    {{- range $callers | sortAlpha }}
    - ports: [{ port: http }]
      from:
        - podSelector:
            matchLabels: {{- include "doorward.selector" (dict "root" $root "process" .) | nindent 14 }}
    {{- end }}
    - ports: [{ port: ops }]
      from:
        - namespaceSelector:
            matchLabels: { kubernetes.io/metadata.name: {{ $root.Values.networkPolicy.monitoringNamespace }} }
  {{- end }}
  egress:
    {{- with $root.Values.networkPolicy.dns }}
    - ports:
        {{- range .ports }}
        - { port: {{ . }}, protocol: UDP }
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
      to: {{- toYaml .to | nindent 8 }}
    {{- end }}
    {{- range index $calls $process }}
    - ports: [{ port: http }]
      to:
        - podSelector:
            matchLabels: {{- include "doorward.selector" (dict "root" $root "process" .) | nindent 14 }}
    {{- end }}
    {{- range $server := index $servers $process }}
    {{- $at := index $root.Values $server }}
    {{- with $at.networks }}
    - ports:
        {{- range $at.ports }}
        - port: {{ . }}
        {{- end }}
      to:
        {{- range . }}
        - ipBlock: { cidr: {{ . }} }
        {{- end }}
    {{- end }}
    {{- end }}
    {{- if has "mail" (index $servers $process | default list) }}
    {{- $internet = concat $internet $root.Values.mail.ports }}
    {{- end }}
    {{- with $internet }}
    - ports:
        {{- range . }}
        - port: {{ . }}
        {{- end }}
      to:
        - ipBlock:
            cidr: 0.0.0.0/0
            except: {{ toJson $root.Values.networkPolicy.privateNetworks }}
        - ipBlock:
            cidr: ::/0
            except: ["fc00::/7", "fe80::/10"]
        {{- range $root.Values.outbound.privateNetworks }}
        - ipBlock: { cidr: {{ . }} }
        {{- end }}
    {{- end }}
    {{- if and $root.Values.monitoring.tracesEndpoint (not $job) }}
    - ports: [{ port: {{ (urlParse $root.Values.monitoring.tracesEndpoint).host | splitList ":" | last | int }} }]
      to:
        - namespaceSelector:
            matchLabels: { kubernetes.io/metadata.name: {{ $root.Values.networkPolicy.monitoringNamespace }} }
    {{- end }}
{{- end }}
