// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"strings"

	v1 "github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1"
	"github.com/conversion-operator/conversion-operator/config/samples/crontab-image/converter/v1beta1"
)

// Annotations preserve fields that the other version lacks.
const (
	keptNote    = "crontabs.example.com/note"
	keptTimeout = "crontabs.example.com/timeout-seconds"
)

func toHub(_ context.Context, spoke *v1beta1.CronTab, hub *v1.CronTab) error {
	spoke = spoke.DeepCopy()
	hub.ObjectMeta, hub.Replicas = spoke.ObjectMeta, spoke.Replicas
	hub.Host, hub.Port, _ = strings.Cut(spoke.HostPort, ":")
	if text, ok := take(hub.Annotations, keptTimeout); ok {
		// Anybody may write anything into an annotation.
		if timeout, err := strconv.ParseInt(text, 10, 64); err == nil {
			hub.TimeoutSeconds = &timeout
		}
	}
	if spoke.Note != "" {
		hub.Annotations = keep(hub.Annotations, keptNote, spoke.Note)
	}
	return nil
}

func fromHub(_ context.Context, hub *v1.CronTab, spoke *v1beta1.CronTab) error {
	hub = hub.DeepCopy()
	spoke.ObjectMeta, spoke.Replicas = hub.ObjectMeta, hub.Replicas
	spoke.HostPort = hub.Host
	if hub.Port != "" {
		spoke.HostPort += ":" + hub.Port
	}
	spoke.Note, _ = take(spoke.Annotations, keptNote)
	if hub.TimeoutSeconds != nil {
		spoke.Annotations = keep(spoke.Annotations, keptTimeout, strconv.FormatInt(*hub.TimeoutSeconds, 10))
	}
	return nil
}

func keep(annotations map[string]string, name, value string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	return annotations
}

func take(annotations map[string]string, name string) (string, bool) {
	value, ok := annotations[name]
	delete(annotations, name)
	return value, ok
}
