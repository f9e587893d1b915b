// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v2 has the benchmark's kind Task in its newer version, the hub, as an
// author of a Go webhook would write it.
//
// +kubebuilder:object:generate=true
package v2

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
	Schedule    Schedule                `json:"schedule,omitzero"`
	Host        string                  `json:"host,omitempty"`
	Port        int32                   `json:"port,omitempty"`
	Runtime     Runtime                 `json:"runtime,omitzero"`
	Concurrency string                  `json:"concurrency,omitempty"`
	Nodes       []string                `json:"nodes,omitempty"`
	Description string                  `json:"description,omitempty"`
	Budget      int64                   `json:"budget,omitempty"`
	Ports       []Port                  `json:"ports,omitempty"`
	Env         []corev1.EnvVar         `json:"env,omitempty"`
	Template    *corev1.PodTemplateSpec `json:"template,omitempty"`
}

// Schedule has the fields of a cron expression.
type Schedule struct {
	Minute     string `json:"minute,omitempty"`
	Hour       string `json:"hour,omitempty"`
	DayOfMonth string `json:"dayOfMonth,omitempty"`
	Month      string `json:"month,omitempty"`
	DayOfWeek  string `json:"dayOfWeek,omitempty"`
}

// Runtime is the image of the program.
type Runtime struct {
	Image string `json:"image,omitempty"`
}

// Port is a port of the program.
type Port struct {
	Name          string `json:"name"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol,omitempty"`
}

// TaskStatus is the state of the task.
type TaskStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
