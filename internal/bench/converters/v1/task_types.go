// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the benchmark's kind Task in its older version, the spoke, as
// an author of a Go webhook would write it.
//
// +kubebuilder:object:generate=true
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Task is a program that runs at given times.
//
// +kubebuilder:object:root=true
type Task struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TaskSpec   `json:"spec"`
	Status TaskStatus `json:"status,omitzero"`
}

// TaskSpec is the program and its schedule.
type TaskSpec struct {
	Cron              string                  `json:"cron,omitempty"`
	Endpoint          string                  `json:"endpoint,omitempty"`
	Image             string                  `json:"image,omitempty"`
	ConcurrencyPolicy string                  `json:"concurrencyPolicy,omitempty"`
	NodeName          string                  `json:"nodeName,omitempty"`
	Owner             string                  `json:"owner,omitempty"`
	Description       string                  `json:"description,omitempty"`
	Budget            int64                   `json:"budget,omitempty"`
	Ports             []Port                  `json:"ports,omitempty"`
	Env               []corev1.EnvVar         `json:"env,omitempty"`
	Template          *corev1.PodTemplateSpec `json:"template,omitempty"`
}

// Port is a port of the program.
type Port struct {
	Name     string `json:"name"`
	Number   int32  `json:"number"`
	Protocol string `json:"protocol,omitempty"`
}

// TaskStatus is the state of the task.
type TaskStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
