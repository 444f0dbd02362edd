{{- define "leaderboard.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "leaderboard.selector" -}}
app.kubernetes.io/name: leaderboard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "leaderboard.labels" -}}
{{ include "leaderboard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "leaderboard.secret" -}}
{{- default (include "leaderboard.name" .) .Values.auth.existingSecret -}}
{{- end -}}

{{- define "leaderboard.pods" -}}
{{ include "leaderboard.name" . }}-pods
{{- end -}}

{{/* The server's files; with Sentinel it is given one that it may write. */}}
{{- define "leaderboard.conf" -}}
{{ ternary "/data/leaderboard.conf" "/etc/leaderboard/leaderboard.conf" .Values.sentinel.enabled }}
{{- end -}}

{{/* What redis-cli needs beside host and port. */}}
{{- define "leaderboard.cli" -}}
{{- if .Values.tls.enabled -}}
--tls --cacert /etc/leaderboard-tls/ca.crt --cert /etc/leaderboard-tls/tls.crt --key /etc/leaderboard-tls/tls.key
{{- end -}}
{{- end -}}

{{/* The end of a probe: how --ping reaches a tls-port. */}}
{{- define "leaderboard.pingTls" -}}
{{- if .Values.tls.enabled }}
- --tls
- --cacert
- /etc/leaderboard-tls/ca.crt
{{- if eq .Values.tls.authClients "yes" }}
- --cert
- /etc/leaderboard-tls/tls.crt
- --key
- /etc/leaderboard-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* What every container may do, and where it has its files. */}}
{{- define "leaderboard.rights" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: data
    mountPath: /data
  - name: settings
    mountPath: /etc/leaderboard
    readOnly: true
  - name: secret
    mountPath: /etc/leaderboard-secret
    readOnly: true
  {{- if .Values.tls.enabled }}
  - name: tls
    mountPath: /etc/leaderboard-tls
    readOnly: true
  {{- end }}
{{- end -}}
