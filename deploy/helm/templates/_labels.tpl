{{- define "labels" -}}
{app.kubernetes.io/name: firn, app.kubernetes.io/instance: {{ .Release.Name }}}
{{- end -}}
